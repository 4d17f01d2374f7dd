package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostNameless bounds the share of comment lines, in per cent, that leave a thing or a person
// without a name.
const mostNameless = 3

var nameless = regexp.MustCompile(`(?i)\b(what|who|whom|nobody|everybody|somebody|anybody)\b`)

// TestCommentsNameTheThing: a comment that says "what is held" or "who asks" makes its reader look
// for the noun. Few lines of a package may do so.
func TestCommentsNameTheThing(t *testing.T) {
	atRoot(t)
	for folder := range goFolders(t) {
		lines, found := 0, []string(nil)
		for _, line := range comments(t, folder) {
			lines++
			if nameless.MatchString(line) {
				found = append(found, line)
			}
		}
		require.LessOrEqual(t, len(found)*100, max(lines, 100)*mostNameless, "%s has %d comment lines; name the thing in some of these:\n%s",
			folder, lines, strings.Join(found, "\n"))
	}
}

// comments returns the lines of comments in a package, tests and directives aside.
func comments(t *testing.T, folder string) (lines []string) {
	t.Helper()
	paths, err := filepath.Glob(folder + "/*.go")
	require.NoError(t, err)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		var file *ast.File
		file, err = parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, group := range file.Comments {
			for _, comment := range group.List {
				text := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
				if text != "" && !strings.HasPrefix(comment.Text, "//go:") {
					lines = append(lines, text)
				}
			}
		}
	}
	return lines
}
