// Package ownfile has files that only their owner may read and write, and that are replaced as a
// whole: after a crash there is the old file or the new one. Earlier files at a path are neither
// trusted nor followed.
package ownfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// StaleAfter is the age at which a temporary file is abandoned: a write takes seconds.
const StaleAfter = time.Minute

// WithoutPath is an error without the path of a file. The name of a temporary file is another one
// each time, and an error with it would be logged as a new problem.
func WithoutPath(err error) error {
	if one := (*fs.PathError)(nil); errors.As(err, &one) {
		return fmt.Errorf("%s: %w", one.Op, one.Err)
	}
	if two := (*os.LinkError)(nil); errors.As(err, &two) {
		return fmt.Errorf("%s: %w", two.Op, two.Err)
	}
	return err
}

// Begin makes an empty file, readable by its owner alone, that is to replace the file at a path. It
// ends with [Commit] or [Discard]. Temporary files that ended processes have left are removed.
func Begin(path string) (*os.File, error) {
	RemoveStale(path)
	// new, and of mode 0600
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	return file, WithoutPath(err)
}

// Commit makes a file of [Begin] that was synced the file at the path. It replaces a link at the
// path and does not follow it.
func Commit(file *os.File, path string) error {
	err := os.Rename(file.Name(), path)
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	return WithoutPath(err)
}

// Discard removes a file of [Begin]. If it cannot, the file is removed once it is stale.
func Discard(file *os.File) {
	_ = file.Close()
	_ = os.Remove(file.Name())
}

// Replace replaces a file as a whole, readable by its owner alone, and syncs it.
func Replace(path string, data []byte) error {
	file, err := Begin(path)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = Commit(file, path)
	}
	if err != nil {
		Discard(file)
	}
	return WithoutPath(err)
}

// RemoveStale removes the temporary files of a path that ended processes have left. A file that
// cannot be removed stays: it is never read.
func RemoveStale(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return // the write says so
	}
	for _, entry := range entries {
		if !isTemporary(entry.Name(), filepath.Base(path)) {
			continue
		}
		info, err := entry.Info()
		if err == nil && time.Since(info.ModTime()).Abs() > StaleAfter {
			_ = os.Remove(filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
}

// isTemporary reports whether name is a temporary file of base: base.NUMBER.tmp, or base.tmp of
// older versions.
func isTemporary(name, base string) bool {
	rest, ours := strings.CutPrefix(name, base+".")
	number, temporary := strings.CutSuffix(rest, "tmp")
	return ours && temporary && strings.Trim(number, ".0123456789") == ""
}

// Open opens a regular file that only its owner may write, to be read. It does not follow a link.
func Open(path string) (*os.File, fs.FileInfo, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("it is not a regular file (%s)", before.Mode().Type())
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a FIFO
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	switch writers := fs.FileMode(0o022); {
	case err != nil:
	case !os.SameFile(before, info):
		err = errors.New("it was replaced while it was opened")
	case info.Mode()&writers != 0 && runtime.GOOS != "windows": // which has no such modes
		err = fmt.Errorf("others than its owner may write it (mode %#o): what it holds may be theirs", info.Mode().Perm())
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// syncFolder makes a rename durable, if the file system can sync folders.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	return nil
}
