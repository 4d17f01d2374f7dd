package docs_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// client are the folders of the client half.
var client = []string{"store", "listwatch", "reflector", "undelta", "informer", "refs", "sources", "metrics", "controller"}

const (
	module = "github.com/tributary-go/tributary"
	server = "server/"                 // the folder of the server half
	fake   = "listwatch/listwatchtest" // the one door from the client half's tests to it
)

// shown are the packages of the picture in docs/design.md. Helpers for tests, and packages that
// nothing else imports, are left out.
var shown = []string{
	"store", "listwatch", "reflector", "undelta", "informer", "refs", "sources", "sources/lookup", "sources/manifest", "sources/static",
	"metrics", "prom", "status", fake, server + "watchcache", server + "collection", server + "apiserver", server + "builtin",
}

// graph has the imports of the module's packages and of all that they import. A package of the
// module is named by its folder, any other by its path.
type graph map[string]*struct {
	imports []string
	reached []string // with the imports of imports; nil until asked for
}

// imports asks go list.
func imports(t *testing.T) graph {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./...")
	command.Stderr = os.Stderr
	output, err := command.Output()
	require.NoError(t, err)
	all := graph{}
	for line := range strings.Lines(string(output)) {
		names := strings.Fields(strings.ReplaceAll(line, module+"/", "")) // generated names too
		all[names[0]] = &struct{ imports, reached []string }{imports: names[1:]}
	}
	require.Greater(t, len(all), 300)
	return all
}

// reach returns the packages that one is compiled with.
func (g graph) reach(name string) []string {
	p := g[name]
	if p == nil { // "C", and vendored packages of the standard library
		return nil
	}
	if p.reached == nil {
		found := map[string]bool{}
		for _, imported := range p.imports {
			found[imported] = true
			for _, further := range g.reach(imported) {
				found[further] = true
			}
		}
		p.reached = slices.AppendSeq(make([]string, 0, len(found)), maps.Keys(found))
	}
	return p.reached
}

// isServer reports whether a folder is of the server half. The fake belongs to it.
func isServer(folder string) bool { return strings.HasPrefix(folder, server) || folder == fake }

// isClient reports whether a folder is of the client half itself: pages, programs and adapters show
// both halves.
func isClient(folder string) bool {
	top, _, _ := strings.Cut(folder, "/")
	return !isServer(folder) && slices.Contains(client, top)
}

// TestClientImportsNoServer: outside the server half, no package but an example imports any of it.
func TestClientImportsNoServer(t *testing.T) {
	atRoot(t)
	all, checked := imports(t), 0
	for folder := range goFolders(t) {
		if all[folder] == nil || isServer(folder) { // a module of its own
			continue
		}
		checked++
		for _, imported := range all.reach(folder) {
			require.False(t, isServer(imported), "%s imports %s", folder, imported)
		}
	}
	require.Greater(t, checked, 20)
}

// TestClientIsTestedThroughTheFake: tests of the client half reach the server half through the
// fake. They may set the fake's options, which are those of a watch cache. A runnable example has
// no testing.T for the fake, and serves by itself.
func TestClientIsTestedThroughTheFake(t *testing.T) {
	atRoot(t)
	checked := 0
	for path := range files(t, "_test.go") {
		if !isClient(filepath.ToSlash(filepath.Dir(path))) {
			continue
		}
		checked++
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		text := string(source)
		if strings.Contains(text, "\nfunc Example") {
			continue
		}
		text = strings.ReplaceAll(text, `"`+module+"/"+server+`watchcache"`, "")
		require.False(t, strings.Contains(text, `"`+module+"/"+server), "%s reaches the server half: use %s", path, fake)
	}
	require.Greater(t, checked, 100)
}

// TestPictureOfImports: the picture in docs/design.md has an arrow for each import between the
// packages that it shows. Imports that follow from others are left out.
func TestPictureOfImports(t *testing.T) {
	atRoot(t)
	all := imports(t)
	picture := map[bool][]string{}
	for _, folder := range shown {
		require.Contains(t, all, folder)
		reached := all.reach(folder)
		for _, to := range shown {
			follows := slices.ContainsFunc(shown, func(between string) bool {
				return slices.Contains(reached, between) && slices.Contains(all.reach(between), to)
			})
			if slices.Contains(reached, to) && !follows {
				picture[isServer(folder)] = append(picture[isServer(folder)], "    "+folder+" --> "+to)
			}
		}
	}
	want := strings.Join(slices.Concat([]string{"flowchart TD", "  subgraph client"}, picture[false],
		[]string{"  end", "  subgraph server"}, picture[true], []string{"  end", ""}), "\n")
	page, err := os.ReadFile("docs/design.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(page), "## Imports\n")
	require.True(t, ok)
	_, rest, _ = strings.Cut(rest, "```mermaid\n")
	drawn, _, _ := strings.Cut(rest, "```")
	require.Equal(t, want, drawn)
}

// TestTheCoreKnowsNoRules: of the packages that judge or describe objects, the watch cache imports
// no more than the client half gets from apimachinery.
func TestTheCoreKnowsNoRules(t *testing.T) {
	atRoot(t)
	all := imports(t)
	client, core := all.reach("informer"), all.reach(server+"watchcache")
	require.Greater(t, len(core), 100)
	for _, path := range core {
		if slices.Contains(client, path) {
			continue
		}
		for _, rules := range []string{"kube-openapi", "structured-merge-diff", "gnostic", "internal/podapi", "server/collection", "server/apiserver"} {
			require.NotContains(t, path, rules)
		}
	}
}

// TestNoPathOfOneRelease: nothing here imports the library of field ownership, whose path has its
// major version: apimachinery 0.38 takes another than 0.37, and one source serves both. Its types
// are inferred instead.
func TestNoPathOfOneRelease(t *testing.T) {
	atRoot(t)
	for path := range files(t, ".go") {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotContains(t, string(source), `"sigs.k8s.io/`+"structured-merge-diff", path)
	}
}
