package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocsNameRealTests: each test and each transcript that a page gives as its proof exists.
func TestDocsNameRealTests(t *testing.T) {
	atRoot(t)
	tests := declaredTests(t)
	named := regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w+`)
	for path := range files(t, ".md") {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		// The end of e2e's page names tests of client-go.
		text, _, _ := strings.Cut(string(page), "## What is left out of client-go's suite")
		for _, name := range named.FindAllString(text, -1) {
			require.True(t, tests[name], "%s names %s, which does not exist", path, name)
		}
	}
	page, err := os.ReadFile("docs/freshness.md")
	require.NoError(t, err)
	for row := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		if len(cells) < 3 || !strings.HasPrefix(row, "|") {
			continue
		}
		for _, transcript := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[len(cells)-2], -1) {
			require.FileExists(t, filepath.Join("reflector", "testdata", transcript[1]+".txt"))
		}
	}
}

// declaredTests has the names of all tests, fuzz targets and benchmarks of this repository.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+|Benchmark\w+)\(`)
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, name := range declared.FindAllStringSubmatch(string(source), -1) {
			tests[name[1]] = true
		}
		return err
	}))
	return tests
}
