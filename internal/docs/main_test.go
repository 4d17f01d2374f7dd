// Package docs_test looks after the pages, the comments and the surface of this module: what they
// say is true, and they are no longer or wider than a reader can take in.
package docs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// atRoot lets a test use paths from the root of the module. In TestMain, go test would not see the
// change of folder: it would take a result from its cache although a page has changed.
func atRoot(t *testing.T) {
	t.Helper()
	folder, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			t.Chdir(folder)
			return
		}
		require.NotEqual(t, filepath.Dir(folder), folder, "no go.mod above this package")
		folder = filepath.Dir(folder)
	}
}
