package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxNames bounds the exported names of a package, members of an enum aside.
const maxNames = 31

// TestSurface: no package exports more names than a reader can take in, and each exported name has
// a doc comment.
func TestSurface(t *testing.T) {
	atRoot(t)
	packages := 0
	for folder := range goFolders(t) {
		if strings.Contains("/"+folder+"/", "/internal/") {
			continue
		}
		packages++
		names := exported(t, folder)
		require.LessOrEqual(t, len(names), maxNames, "%s exports %s", folder, strings.Join(names, ", "))
	}
	require.Greater(t, packages, 10)
}

// goFolders has the folders of this module with packages that a program can import.
func goFolders(t *testing.T) map[string]bool {
	t.Helper()
	folders := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			switch path {
			case ".git", "bench", "e2e", "examples":
				return filepath.SkipDir
			}
			if entry.Name() == "testdata" {
				return filepath.SkipDir
			}
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			folders[filepath.ToSlash(filepath.Dir(path))] = true
		}
		return nil
	}))
	return folders
}

// exported returns the exported names of a package, except members of an enum: constants of a type
// that the package declares. Each name must have a doc comment.
func exported(t *testing.T, folder string) (names []string) {
	t.Helper()
	files := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	add := func(name *ast.Ident, documented bool) {
		if name.IsExported() {
			require.True(t, documented, "%s: %s has no doc comment", folder, name)
			names = append(names, name.Name)
		}
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name, d.Doc != nil)
				}
			case *ast.GenDecl:
				enum := false
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						add(spec.Name, spec.Doc != nil || d.Doc != nil)
					case *ast.ValueSpec:
						if spec.Type != nil || len(spec.Values) > 0 { // else as before
							enum = d.Tok == token.CONST && spec.Type != nil
						}
						if enum {
							continue
						}
						for _, name := range spec.Names {
							add(name, spec.Doc != nil || d.Doc != nil || spec.Comment != nil)
						}
					}
				}
			}
		}
	}
	return names
}
