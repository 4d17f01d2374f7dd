package access

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/tributary-go/tributary/sources/manifest"
)

// ReadFile reads a regular file of less than the manifest limit. What is there may have changed since it was looked at, so
// it is opened in a way that does not wait for the other end of a FIFO.
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
		return nil, fmt.Errorf("%s is not a regular file (%s)", path, info.Mode().Type())
	case info.Size() >= manifest.MaxSize:
		return nil, fmt.Errorf("%s: %w: %d MiB or more are not read", path, manifest.ErrTooLarge, manifest.MaxSize>>20)
	}
	// The size may be one that a special file system makes up, so that it alone bounds nothing.
	data, err := io.ReadAll(io.LimitReader(file, manifest.MaxSize))
	if err == nil && len(data) >= manifest.MaxSize {
		err = fmt.Errorf("%s: %w: %d MiB or more are not read", path, manifest.ErrTooLarge, manifest.MaxSize>>20)
	}
	return data, err
}
