package controller

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/tributary-go/tributary/store"
)

// buildVersion is a digest of the file that runs. A new build is another version then, whether or
// not it was made of a commit.
var buildVersion = sync.OnceValues(func() (string, error) {
	path, err := "/proc/self/exe", error(nil) // also if the file was replaced since
	if runtime.GOOS != "linux" {
		path, err = os.Executable()
	}
	if err != nil {
		return "", err
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return fmt.Sprintf("build %x", sum.Sum(nil)[:16]), nil
})

// versions are those of the copies, by feed.
func (c *Controller[K]) versions() (all []store.Version) {
	for _, f := range c.Feeds {
		all = append(all, f.version())
	}
	return all
}
