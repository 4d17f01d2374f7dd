package docs_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const columns = 100

// wrapped are the folders whose Go comments are wrapped. The list only grows.
var wrapped = []string{
	".", "bench", "bench/agents", "bench/etcd", "bench/fanout", "bench/interop", "bench/interop/caches", "bench/world", "controllerruntime", "controllerruntime/examples/controller", "server/crd",
	"e2e", "e2e/assets", "e2e/cluster",
	"e2e/fidelity", "e2e/kubelet", "e2e/netfault", "e2e/robustness", "e2e/robustness/member", "e2e/servers/podsapi", "e2e/servers/podsource", "e2e/suites", "cmd/tributary", "etcd", "etcd/backup",
	"examples/controller", "examples/fake-listwatch", "examples/kubelet-pods", "examples/node-agent",
	"examples/readme/agent", "examples/readme/controller", "examples/readme/unittest",
	"examples/readme/whose", "e2e/browser", "internal/following",
	"internal/content", "internal/credentials", "internal/docs", "internal/null", "internal/ring", "internal/rv", "internal/sharing",
	"internal/signal",
	"internal/trie", "internal/wire", "metrics", "prom",
	"status", "sources", "sources/health", "sources/internal/access", "sources/internal/checkpoint", "sources/internal/limit", "sources/internal/live",
	"sources/kubelet", "sources/lookup", "sources/manifest",
	"internal/podapi", "sources/sourcestest", "sources/static", "store", "store/storetest", "undelta",
	"server/watchcache", "server/apiserver", "server/collection", "server/internal/fieldtypes",
	"server/internal/apierror", "server/internal/cachetest",
	"server/internal/object",
	"informer/enqueue", "informer/join", "informer/predicate", "internal/pipes", "internal/self", "listwatch/mapper",
	"informer", "informer/clientgo", "informer/clientgo/dynamicinformer", "informer/clientgo/informers",
	"informer/clientgo/internal/factory", "informer/clientgo/metadatainformer", "internal/watchlist", "listwatch", "listwatch/listwatchtest", "reflector",
}

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

// TestCommentsAreWrapped: in the folders of wrapped, no line of a Go comment has more than 100
// columns. Tables and code in comments, addresses and directives may.
func TestCommentsAreWrapped(t *testing.T) {
	atRoot(t)
	found := map[string][]string{}
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
						folder := filepath.ToSlash(filepath.Dir(path))
						found[folder] = append(found[folder], fmt.Sprintf("%s:%d has %d columns", path, first+i, n))
					}
				}
			}
		}
	}
	for folder, lines := range found {
		if slices.Contains(wrapped, folder) {
			t.Errorf("wrap these comments:\n%s", strings.Join(lines, "\n"))
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
