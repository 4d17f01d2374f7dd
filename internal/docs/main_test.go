// Package docs_test looks after the pages, the comments and the surface of this module: what they
// say is true, and they are no longer or wider than a reader can take in.
package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestMain runs the tests in the root of the module, from which all their paths are.
func TestMain(m *testing.M) {
	if err := toRoot(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func toRoot() error {
	folder, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(folder, "go.mod")); missing == nil {
			return os.Chdir(folder)
		}
		if folder == filepath.Dir(folder) {
			return fmt.Errorf("no go.mod above this package")
		}
		folder = filepath.Dir(folder)
	}
	return err
}
