package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNodeAgentsPage: each block of Go or YAML on the page is a part of a file that a test runs, to
// the letter. The agents are programs of less than 60 lines, and the page can be read at one go.
func TestNodeAgentsPage(t *testing.T) {
	atRoot(t)
	source, err := os.ReadFile("docs/node-agents.md")
	require.NoError(t, err)
	page := string(source)
	require.LessOrEqual(t, strings.Count(page, "\n"), 170)
	for language, patterns := range map[string][]string{
		"go":   {"examples/agents/*/main.go"},
		"yaml": {"examples/node-agent/deploy/*.yaml", "examples/node-agent/deploy/references/*.yaml"},
	} {
		text := contents(t, patterns)
		blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(page, -1)
		require.NotEmpty(t, blocks)
		for _, block := range blocks {
			require.True(t, strings.Contains(text, block[1]), "this is in none of %v:\n%s", patterns, block[1])
			require.LessOrEqual(t, strings.Count(block[1], "\n"), 27)
		}
	}
	programs, err := filepath.Glob("examples/agents/*/main.go")
	require.NoError(t, err)
	require.Len(t, programs, 4)
	for _, program := range programs {
		require.Less(t, strings.Count(read(t, program), "\n"), 60, program)
	}
}

func contents(t *testing.T, patterns []string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			all.Write(text)
		}
	}
	return all.String()
}
