package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/tributary-go/tributary/internal/ownfile"
)

// CheckFolder fails if there is no folder at the path. It names the path.
func CheckFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the folder %s does not exist: make it before the agent starts", path)
	case err != nil:
		return fmt.Errorf("the folder %s cannot be used: %w", path, ownfile.WithoutPath(err))
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", path)
	}
	return nil
}

// readPrivate reads a file of bounded length that only its owner may write.
func readPrivate(path string, limit int64) ([]byte, error) {
	file, _, err := ownfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d MiB", limit>>20)
	}
	return data, err
}
