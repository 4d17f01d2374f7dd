package access

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tributary-go/tributary/sources/internal/limit"
)

// NotRegular is the problem of a path that leads to a folder, a pipe or a device.
func NotRegular(path string, info fs.FileInfo) error {
	return Mark("refused", fmt.Errorf("%s is not a regular file (%s)", path, info.Mode().Type()))
}

// ReadFile reads a regular file below the limit. The file may have changed since it was looked at,
// so it is opened without waiting for the other end of a FIFO.
func ReadFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, NotRegular(path, info)
	case info.Size() >= limit.Size:
		return nil, fmt.Errorf("%s: %w: %d MiB or more are not read", path, limit.ErrTooLarge, limit.Size>>20)
	}
	// A special file system may make up the size, so the read has a bound of its own.
	data, err := io.ReadAll(io.LimitReader(file, limit.Size))
	if err == nil && len(data) >= limit.Size {
		err = fmt.Errorf("%s: %w: %d MiB or more are not read", path, limit.ErrTooLarge, limit.Size>>20)
	}
	return data, err
}

// ErrNoPath refuses an empty path, which the system would take for the working directory.
var ErrNoPath = errors.New("the manifest path is empty: give a file or a folder")

// Path makes a path absolute. It refuses an empty one.
func Path(path string) (string, error) {
	if path == "" {
		return "", ErrNoPath
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("manifest path %q: %w", path, err)
	}
	return absolute, nil
}

// Missing is the problem of a path that does not exist, and may never have existed.
func Missing(path string) error {
	return fmt.Errorf("%s is not there: check the path; an empty folder, or a file with a list without items, "+
		"says that nothing is declared: %w", path, fs.ErrNotExist)
}
