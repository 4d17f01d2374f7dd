package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// staleAfter is the age at which a temporary file is abandoned: a write takes seconds. The next
// load or save removes it.
const staleAfter = time.Minute

// CheckFolder fails if there is no folder at the path. It names the path.
func CheckFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the folder %s does not exist: make it before the agent starts", path)
	case err != nil:
		return fmt.Errorf("the folder %s cannot be used: %w", path, withoutPath(err))
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", path)
	}
	return nil
}

// withoutPath is an error without the path of a file. The name of a temporary file is another one
// each time, and an error with it would be logged as a new problem.
func withoutPath(err error) error {
	if one := (*fs.PathError)(nil); errors.As(err, &one) {
		return fmt.Errorf("%s: %w", one.Op, one.Err)
	}
	if two := (*os.LinkError)(nil); errors.As(err, &two) {
		return fmt.Errorf("%s: %w", two.Op, two.Err)
	}
	return err
}

// writeAtomically replaces a file as a whole, readable by its owner alone. It replaces a link at
// the path and does not follow it.
func writeAtomically(path string, data []byte) error {
	removeStale(path)
	// new, and of mode 0600
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return withoutPath(err)
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // else it is removed once it is stale
		return withoutPath(err)
	}
	return syncFolder(filepath.Dir(path))
}

// removeStale removes the temporary files that ended processes have left. A file that cannot be
// removed stays: it is never read.
func removeStale(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return // the write says so
	}
	for _, entry := range entries {
		if !isTemporary(entry.Name(), filepath.Base(path)) {
			continue
		}
		info, err := entry.Info()
		if err == nil && time.Since(info.ModTime()).Abs() > staleAfter {
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

// readPrivate reads a regular file that only its owner may write. It does not follow a link.
func readPrivate(path string, limit int64) ([]byte, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("it is not a regular file (%s)", before.Mode().Type())
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a FIFO
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch writers := fs.FileMode(0o022); {
	case err != nil:
		return nil, err
	case !os.SameFile(before, info):
		return nil, errors.New("it was replaced while it was opened")
	case info.Mode()&writers != 0 && runtime.GOOS != "windows": // which has no such modes
		return nil, fmt.Errorf("others than its owner may write it (mode %#o): what it holds may be theirs", info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d MiB", limit>>20)
	}
	return data, err
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
