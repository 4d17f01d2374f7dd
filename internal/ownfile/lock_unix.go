//go:build unix

package ownfile

import (
	"errors"
	"os"
	"syscall"
)

// Lock claims an open file until it is closed, or its process has ended. It fails if another opener
// of the file has claimed it.
func Lock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errors.New("another process writes it: give each a folder of its own")
	}
	return err
}
