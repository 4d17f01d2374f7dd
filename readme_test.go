package tributary_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadmeShowsTestedCode: each Go block of the README stands in example_test.go, line by line, where it is compiled
// and its output checked.
func TestReadmeShowsTestedCode(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	examples, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	tested := unindented(string(examples))
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.Len(t, blocks, 3)
	for _, block := range blocks {
		require.Contains(t, tested, unindented(block[1]))
	}
}

func unindented(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}
