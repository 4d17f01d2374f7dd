package docs_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const columns = 100

// target is the part of a line that cannot be wrapped: an address, or the target of a link.
var target = regexp.MustCompile(`\]\([^)]*\)|https?://\S+`)

func width(line string) int {
	return utf8.RuneCountInString(strings.ReplaceAll(target.ReplaceAllString(line, ""), "\t", "    "))
}

// TestProseIsWrapped: no line of prose in a page has more than 100 columns. Tables, code and
// addresses may.
func TestProseIsWrapped(t *testing.T) {
	atRoot(t)
	for path := range files(t, ".md") {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		fenced, number := false, 0
		for line := range strings.Lines(string(page)) {
			number++
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			if fenced || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ") {
				continue
			}
			if n := width(strings.TrimRight(line, "\n")); n > columns {
				t.Errorf("%s:%d has %d columns", path, number, n)
			}
		}
	}
}

// TestCommentsAreWrapped: no line of a Go comment has more than 100 columns. Tables and code in
// comments, addresses and directives may.
func TestCommentsAreWrapped(t *testing.T) {
	atRoot(t)
	for path := range files(t, ".go") {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := strings.Split(string(source), "\n")
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, source, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, group := range file.Comments {
			for _, comment := range group.List {
				first := set.Position(comment.Pos()).Line
				for i, text := range strings.Split(comment.Text, "\n") {
					if strings.HasPrefix(text, "//go:") || strings.HasPrefix(text, "//\t") {
						continue
					}
					if n := width(lines[first+i-1]); n > columns {
						t.Errorf("%s:%d has %d columns", path, first+i, n)
					}
				}
			}
		}
	}
}

// files yields the files of this repository with this ending, except those in testdata.
func files(t *testing.T, ending string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "testdata") {
				return filepath.SkipDir
			}
			if strings.HasSuffix(path, ending) && !yield(path) {
				return filepath.SkipAll
			}
			return nil
		})
		require.NoError(t, err)
	}
}
