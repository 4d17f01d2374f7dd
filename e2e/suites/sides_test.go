package suites

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A test binary makes informers of one side: ours, or client-go's. Its environment chooses, so both
// sides are one binary; see testdata/sides.
const (
	ourSide   = "tributary"
	theirSide = "client-go"
)

const ourModule = "github.com/tributary-go/tributary"

// sidePackages has the packages that lead to either side. The workspace's module has them, or they
// are one.
const sidePackages = ourModule + "/e2e/suites/sides/"

// addSides puts those packages into the workspace. The groups of the factory are those of ours.
func (w *workspace) addSides() {
	w.t.Helper()
	sides := filepath.Join(w.root, "sides")
	if w.pin.own != "" {
		sides = w.root + "-sides"
	}
	require.NoError(w.t, os.CopyFS(sides, os.DirFS("testdata/sides")))
	if w.pin.own != "" {
		module := strings.TrimSuffix(sidePackages, "/")
		require.NoError(w.t, os.WriteFile(filepath.Join(sides, "go.mod"), []byte("module "+module+"\n\ngo 1.25.0\n"), 0o644))
		w.require(module, sides)
		w.require(ourModule, "../..")
		w.require(ourModule+"/informer/clientgo", "../../informer/clientgo")
		if w.requirements(w.source)["sigs.k8s.io/controller-runtime"] != "" {
			w.require(ourModule+"/controllerruntime", "../../controllerruntime")
		}
	}
	groups, err := os.ReadFile("../../informer/clientgo/informers/groups.go")
	require.NoError(w.t, err)
	require.NoError(w.t, os.WriteFile(filepath.Join(sides, "informers", "groups.go"), groups, 0o644))
}

// bothSides edits in all files of the copy what an adopter changes: imports of client-go's
// factories, and constructors of its package cache. The generated files of a program that keeps its
// go.mod stay, as with an adopter.
func (w *workspace) bothSides() {
	w.t.Helper()
	edited := 0
	require.NoError(w.t, filepath.WalkDir(w.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		before, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		after := eitherSide(string(before))
		generated := strings.Contains(string(before), "\n// Code generated ") || strings.HasPrefix(string(before), "// Code generated ")
		if after == string(before) || generated && w.pin.own != "" {
			return nil
		}
		edited++
		return os.WriteFile(path, []byte(after), 0o644)
	}))
	require.True(w.t, edited > 0 || w.pin.own != "", "no file of %s makes an informer", w.pin.module)
}

// adopted leads the imports of an adopter's lines to both sides.
var adopted = strings.NewReplacer(
	`"`+ourModule+`/informer/clientgo`, `"`+sidePackages+`clientgo`,
	`"`+newCache+`"`, `"`+sidePackages+`controllerruntime"`)

var (
	sideImports = strings.NewReplacer(
		`"k8s.io/client-go/informers"`, `"`+sidePackages+`informers"`,
		`"k8s.io/client-go/dynamic/dynamicinformer"`, `"`+sidePackages+`dynamicinformer"`,
		`"k8s.io/client-go/metadata/metadatainformer"`, `"`+sidePackages+`metadatainformer"`)
	importOfCache = regexp.MustCompile(`(?m)^\t(?:cache )?"k8s\.io/client-go/tools/cache"\n`)
	constructor   = regexp.MustCompile(`\bcache\.(New(?:(?:SharedIndex|Shared|Indexer|)Informer(?:WithOptions|)|))\(`)
	useOfCache    = regexp.MustCompile(`\bcache\.`)
)

// eitherSide edits the text of a file.
func eitherSide(text string) string {
	text = sideImports.Replace(text)
	imported := importOfCache.FindString(text)
	if imported == "" || !constructor.MatchString(text) {
		return text
	}
	text = constructor.ReplaceAllString(text, "sidecache.$1(")
	imports := "\tsidecache \"" + sidePackages + "cache\"\n"
	if useOfCache.MatchString(strings.Replace(text, imported, "", 1)) {
		imports += imported
	}
	return strings.Replace(text, imported, imports, 1)
}

// changed counts the lines of Go that are other than in the module: those of the program, and those
// of its tests.
func (w *workspace) changed() (lines, ofTests int) {
	w.t.Helper()
	require.NoError(w.t, filepath.WalkDir(w.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		after, err := os.ReadFile(path)
		require.NoError(w.t, err)
		before, err := os.ReadFile(w.source + strings.TrimPrefix(path, w.folder))
		require.NoError(w.t, err)
		if strings.HasSuffix(path, "_test.go") {
			ofTests += differing(string(before), string(after))
		} else {
			lines += differing(string(before), string(after))
		}
		return nil
	}))
	return lines, ofTests
}

// differing counts the lines that one text has and the other has not, a changed one once.
func differing(before, after string) int {
	counts := map[string]int{}
	for line := range strings.Lines(after) {
		counts[line]++
	}
	for line := range strings.Lines(before) {
		counts[line]--
	}
	added, removed := 0, 0
	for _, n := range counts {
		added, removed = added+max(n, 0), removed+max(-n, 0)
	}
	return max(added, removed)
}

// TestEitherSide: what is edited in a file, and what is left as it is.
func TestEitherSide(t *testing.T) {
	const head, side = "import (\n", "\tsidecache \"" + sidePackages + "cache\"\n"
	const cache = "\t\"k8s.io/client-go/tools/cache\"\n"
	for before, after := range map[string]string{
		head + "\t\"k8s.io/client-go/informers\"\n":                            head + "\t\"" + sidePackages + "informers\"\n",
		head + "\tcore \"k8s.io/client-go/informers/core/v1\"\n":               head + "\tcore \"k8s.io/client-go/informers/core/v1\"\n",
		head + cache + ")\n\tcache.NewIndexer(f)\n":                            head + cache + ")\n\tcache.NewIndexer(f)\n",
		head + cache + ")\n\tcache.NewSharedInformer(a)\n":                     head + side + ")\n\tsidecache.NewSharedInformer(a)\n",
		head + cache + ")\n\tcache.NewSharedIndexInformerWithOptions(a, b.c{}": head + side + ")\n\tsidecache.NewSharedIndexInformerWithOptions(a, b.c{}",
		head + cache + ")\n\tcache.NewInformer(a, cache.Indexers{})\n":         head + side + cache + ")\n\tsidecache.NewInformer(a, cache.Indexers{})\n",
	} {
		require.Equal(t, after, eitherSide(before))
	}
	require.Equal(t, 2, differing("a\nb\nc\n", "a\nB\nc\nd\n"))
	require.Equal(t, 1, differing("a\na\n", "a\n"))
}
