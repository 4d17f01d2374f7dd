package docs_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// client are the folders of the client half.
var client = []string{"store", "listwatch", "reflector", "undelta", "informer", "refs", "sources", "metrics"}

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

// listed is a package as go list describes it; folders are relative to the root.
type listed struct {
	ImportPath string
	Imports    []string

	folder              string
	imports, reachables []string
}

// packages asks go list for all packages of the module.
func packages(t *testing.T) map[string]*listed {
	t.Helper()
	command := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	command.Stderr = os.Stderr
	output, err := command.Output()
	require.NoError(t, err)
	all := map[string]*listed{}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		p := &listed{}
		err := decoder.Decode(p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		p.folder = strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		p.imports = ours(p.Imports)
		all[p.folder] = p
	}
	require.Greater(t, len(all), 30)
	return all
}

// ours are the folders of those imports that are packages of this module.
func ours(paths []string) (folders []string) {
	for _, path := range paths {
		if folder, ok := strings.CutPrefix(path, module+"/"); ok {
			folders = append(folders, folder)
		}
	}
	return folders
}

// reach returns the folders that a package imports, directly or not.
func reach(all map[string]*listed, folder string) []string {
	p := all[folder]
	if p.reachables == nil {
		found := map[string]bool{}
		for _, imported := range p.imports {
			found[imported] = true
			for _, further := range reach(all, imported) {
				found[further] = true
			}
		}
		p.reachables = make([]string, 0, len(found))
		for name := range found {
			p.reachables = append(p.reachables, name)
		}
		slices.Sort(p.reachables)
	}
	return p.reachables
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
	all, checked := packages(t), 0
	for folder := range all {
		if isServer(folder) || strings.HasPrefix(folder, "examples/") {
			continue
		}
		checked++
		for _, imported := range reach(all, folder) {
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
	all := packages(t)
	picture := map[bool][]string{}
	for _, folder := range shown {
		require.Contains(t, all, folder)
		reached := reach(all, folder)
		for _, to := range shown {
			follows := slices.ContainsFunc(shown, func(between string) bool {
				return slices.Contains(reached, between) && slices.Contains(reach(all, between), to)
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
