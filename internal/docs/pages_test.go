package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// TestHowToPages: each is under 100 lines, stands in the index, and its Go blocks are parts of
// programs that a test runs, whatever their indentation.
func TestHowToPages(t *testing.T) {
	atRoot(t)
	programs := flat(contents(t, []string{
		"examples/*/*.go", "informer/clientgo/example_test.go", "informer/clientgo/informers/example_test.go", "controllerruntime/example_test.go",
	}))
	index := read(t, "docs/README.md")
	paths, err := filepath.Glob("docs/howto/*.md")
	require.NoError(t, err)
	require.Greater(t, len(paths), 9)
	shown := 0
	for _, path := range paths {
		page := read(t, path)
		require.Less(t, strings.Count(page, "\n"), 100, path)
		require.Contains(t, index, "(howto/"+filepath.Base(path)+")")
		for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page, -1) {
			require.True(t, strings.Contains(programs, flat(block[1])), "%s: no program has\n%s", path, block[1])
			shown++
		}
	}
	require.Greater(t, shown, 12)
}

// TestIndexHasEachPage: docs/README.md leads to each page of docs, but for the design of packages.
func TestIndexHasEachPage(t *testing.T) {
	atRoot(t)
	index := read(t, "docs/README.md")
	for path := range files(t, ".md") {
		path = filepath.ToSlash(path)
		page, below := strings.CutPrefix(path, "docs/")
		if below && page != "README.md" && !strings.HasPrefix(page, "design/") {
			require.Contains(t, index, "("+page+")")
		}
	}
}

// TestLinks: each relative link leads to a file, and to a heading or an anchor of its page.
func TestLinks(t *testing.T) {
	atRoot(t)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	checked := 0
	for path := range files(t, ".md") {
		for _, found := range link.FindAllStringSubmatch(regexp.MustCompile("`[^`]*`").ReplaceAllString(prose(read(t, path)), ""), -1) {
			to, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(found[1], "://") {
				continue
			}
			checked++
			if to = filepath.Join(filepath.Dir(path), to); strings.HasPrefix(found[1], "#") {
				to = path
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there", path, found[1])
				continue
			}
			if anchor != "" && !anchors(read(t, to))[anchor] {
				t.Errorf("%s links to %s: there is no such heading", path, found[1])
			}
		}
	}
	require.Greater(t, checked, 200)
}

// TestGoFilesNameRealPages: a page that a comment or a text of the code names is there.
func TestGoFilesNameRealPages(t *testing.T) {
	atRoot(t)
	named := regexp.MustCompile(`\bdocs/[\w/-]+\.(?:md|svg)`)
	for path := range files(t, ".go") {
		for _, page := range named.FindAllString(read(t, path), -1) {
			require.FileExists(t, page, "%s names it", path)
		}
	}
}

// blocksOfCode are fenced, or indented by four columns.
var blocksOfCode = regexp.MustCompile("(?ms)^```.*?^```|^    .*?$")

// prose is a page without its blocks of code.
func prose(page string) string {
	return blocksOfCode.ReplaceAllString(page, "")
}

// anchors has the anchors of a page, as GitHub makes them of its headings.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, id := range regexp.MustCompile(`<a id="([^"]+)">`).FindAllStringSubmatch(page, -1) {
		all[id[1]] = true
	}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(prose(page), -1) {
		text := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading[1], "$1")
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, text)] = true
	}
	return all
}

// flat is a text without the indentation of its lines.
func flat(text string) string { return regexp.MustCompile(`(?m)^\s+`).ReplaceAllString(text, "") }

// TestPackagesLeadToTheirPages: the documentation of each main package names a page for its users.
func TestPackagesLeadToTheirPages(t *testing.T) {
	atRoot(t)
	for _, folder := range []string{
		"sources", "sources/lookup", "sources/kubelet", "sources/static", "reflector", "store", "store/packed", "informer", "informer/clientgo",
		"informer/clientgo/informers", "listwatch", "listwatch/listwatchtest", "undelta", "refs", "controller", "controllerruntime", "status", "prom",
		"etcd", "server/relay", "server/apiserver", "server/crd",
	} {
		require.Regexp(t, `(?m)^// .*\bdocs/(howto/|tutorial|node-agents|kubelet|relay|refs|fake|serve|faq)`, read(t, folder+"/doc.go"), folder)
	}
}
