//go:build unix

package ownfile

import (
	"errors"
	"os"
	"syscall"
)

// Lock claims a path by a file of its own, until that is closed or its process has ended. It fails
// if another opener has claimed the path. The file stays.
func Lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, WithoutPath(err)
	}
	if err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return file, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errors.New("it is in use: give each writer a path of its own")
	}
	return nil, err
}
