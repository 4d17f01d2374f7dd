package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unclear is a log line with error=null, or with a second key of that name.
var unclear = regexp.MustCompile(`\.Error\(nil, "|\.Error\([^n].*, "error",`)

// TestALineHasOneError: a logger gives each error line the key error, so the error is its argument
// and nothing else has the key.
func TestALineHasOneError(t *testing.T) {
	atRoot(t)
	for path := range files(t, ".go") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Empty(t, unclear.FindAllString(string(source), -1), path)
	}
}
