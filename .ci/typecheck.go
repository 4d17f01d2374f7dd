// Command typecheck finds the errors of types, also on another system, without compiling:
//
//	go run .ci/typecheck.go windows ./...
//	go run .ci/typecheck.go linux/386 -test ./... # another processor; tests, too
//
// It reads the packages and all their imports, the standard library too, with the files of that
// system. In packages outside this module it skips the bodies of functions. So it takes seconds of
// one core, where a build takes minutes: a build makes machine code of each imported package.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct {
		Main      bool
		GoVersion string
	}
	Error *struct{ Err string }
}

// imported finds the packages that have been checked. names has those whose path in the source is
// not their own, such as what the standard library vendors.
type imported struct {
	packages map[string]*types.Package
	names    map[string]string
}

func (i imported) Import(path string) (*types.Package, error) {
	if name, ok := i.names[path]; ok {
		path = name
	}
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if found := i.packages[path]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("%s was not listed", path)
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: typecheck GOOS[/GOARCH] [-test] PACKAGE...")
		os.Exit(2)
	}
	ours, failed, err := check(os.Args[1], os.Args[2:])
	if err == nil && ours == 0 {
		err = errors.New("no package of this module")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "typecheck:", err)
	}
	if err != nil || failed {
		os.Exit(1)
	}
	fmt.Printf("%d packages have no type error on %s\n", ours, os.Args[1])
}

// check takes the packages in the order of go list, imports first.
func check(target string, patterns []string) (ours int, failed bool, err error) {
	system, processor, ok := strings.Cut(target, "/")
	if !ok {
		processor = runtime.GOARCH
	}
	list := exec.Command("go", append([]string{"list", "-deps", "-e", "-json=ImportPath,Dir,GoFiles,ImportMap,Module,Error"}, patterns...)...)
	// cgo would have to make files.
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err != nil {
		return 0, false, err
	}
	if err := list.Start(); err != nil {
		return 0, false, err
	}
	packages := map[string]*types.Package{}
	for decoder := json.NewDecoder(out); ; {
		var of listed
		if err := decoder.Decode(&of); errors.Is(err, io.EOF) {
			return ours, failed, list.Wait()
		} else if err != nil {
			return ours, failed, err
		}
		if of.Error != nil {
			return ours, failed, errors.New(of.Error.Err)
		}
		if strings.HasSuffix(of.ImportPath, ".test") {
			continue // the main package of a test, which go test would write
		}
		own := of.Module != nil && of.Module.Main
		if own {
			ours++
		}
		files := token.NewFileSet()
		config := types.Config{
			Importer:         imported{packages, of.ImportMap},
			IgnoreFuncBodies: !own,
			Sizes:            types.SizesFor("gc", processor),
			Error: func(err error) {
				failed = true // in an import, too: what depends on it would not be checked in full
				fmt.Fprintln(os.Stderr, err)
			},
		}
		if of.Module != nil && of.Module.GoVersion != "" {
			config.GoVersion = "go" + of.Module.GoVersion
		}
		var parsed []*ast.File
		for _, name := range of.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(of.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return ours, failed, err
			}
			parsed = append(parsed, file)
		}
		packages[of.ImportPath], _ = config.Check(of.ImportPath, files, parsed, nil)
	}
}
