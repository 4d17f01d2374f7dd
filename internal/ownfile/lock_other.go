//go:build !unix

package ownfile

import "os"

// Lock claims nothing here: the system has no such locks.
func Lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	return file, WithoutPath(err)
}
