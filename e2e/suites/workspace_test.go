package suites

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pin is a module, and what else is required. Our own go.mod has the version of one without.
type pin struct {
	module, version string
	more            []string // what tests alone import, as "path version"
	from            string   // the path by which it is downloaded, if that is not the module's own

	// own is the client-go of a program whose go.mod stays, and to which ours are added: the one
	// that it asks for, or our oldest if that is newer.
	own       string
	toolchain string // of Go, if it asks for a newer one than ours
}

// workspace is a folder whose go.mod has our requirements and those of a pin. What some programs
// need is no concern of the others.
type workspace struct {
	t      testing.TB
	pin    pin
	root   string // where its go.mod is
	folder string // the copy that newWorkspace makes
	source string // what it is a copy of
}

func empty(t testing.TB, p pin) *workspace {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs the tests of other modules: not under -short")
	}
	return &workspace{t: t, pin: p, root: t.TempDir()}
}

// newVersions makes a workspace without a copy. Its go.mod begins as ours: what both compile, the
// build cache has once. All versions are exact. The go command selects the same ones each time, and
// the database of sums verifies them.
func newVersions(t testing.TB, p pin) *workspace {
	t.Helper()
	w := empty(t, p)
	goMod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	here, err := os.Getwd()
	require.NoError(t, err)
	goMod = regexp.MustCompile(`=> \.\./\S*`).ReplaceAllFunc(goMod, func(target []byte) []byte {
		return []byte("=> " + filepath.Join(here, strings.TrimPrefix(string(target), "=> ")))
	})
	if p.version != "" {
		for _, required := range append([]string{p.module + " " + p.version}, p.more...) {
			goMod = fmt.Appendf(goMod, "\nrequire %s\n", required)
		}
	}
	goSum, err := os.ReadFile("go.sum")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(w.root, "go.mod"), goMod, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(w.root, "go.sum"), goSum, 0o644))
	return w
}

// newWorkspace copies a module out of the module cache, to be edited. The copy takes its place.
func newWorkspace(t testing.TB, p pin) *workspace {
	t.Helper()
	w := empty(t, p)
	if p.own == "" {
		w = newVersions(t, p)
	}
	if said, err := w.command("version").CombinedOutput(); err != nil {
		t.Skipf("there is no %s: %s", p.toolchain, said)
	}
	w.folder = filepath.Join(w.root, "module")
	wanted := cmp.Or(p.from, p.module)
	if p.version != "" {
		wanted += "@" + p.version
	}
	var from struct{ Version, Dir string }
	require.NoError(t, json.Unmarshal(output(t, w.command("mod", "download", "-json", wanted)), &from))
	w.pin.version = from.Version
	require.NoError(t, os.CopyFS(w.folder, os.DirFS(from.Dir)))
	w.source = from.Dir
	if p.own != "" {
		w.root = w.folder
		return w
	}
	output(t, w.command("mod", "edit", "-replace", p.module+"="+w.folder))
	w.stage()
	return w
}

// require adds a module that is in a folder here to the requirements.
func (w *workspace) require(module, folder string) {
	w.t.Helper()
	folder, err := filepath.Abs(folder)
	require.NoError(w.t, err)
	output(w.t, w.command("mod", "edit", "-require", module+"@v0.0.0-00010101000000-000000000000", "-replace", module+"="+folder))
}

// requirements maps modules to versions, as the go.mod of a folder has them.
func (w *workspace) requirements(folder string) map[string]string {
	w.t.Helper()
	var goMod struct {
		Require []struct{ Path, Version string }
	}
	require.NoError(w.t, json.Unmarshal(output(w.t, w.command("mod", "edit", "-json", filepath.Join(folder, "go.mod"))), &goMod))
	versions := map[string]string{}
	for _, required := range goMod.Require {
		versions[required.Path] = required.Version
	}
	return versions
}

// stage replaces the modules that Kubernetes has in folders of its repository, which its module
// lacks, by those of its release.
func (w *workspace) stage() {
	w.t.Helper()
	for path, version := range w.requirements(w.source) {
		if version == "v0.0.0" && strings.HasPrefix(path, "k8s.io/") {
			release := strings.Replace(w.pin.version, "v1", "v0", 1)
			output(w.t, w.command("mod", "edit", "-replace", path+"="+path+"@"+release))
		}
	}
}

// command is a go command among the versions of the workspace.
func (w *workspace) command(arguments ...string) *exec.Cmd {
	command := exec.Command("go", arguments...)
	command.Dir = w.root
	if w.pin.toolchain != "" {
		command.Env = append(os.Environ(), "GOTOOLCHAIN="+w.pin.toolchain)
	}
	return command
}

// compile is command for build and test, which add what go.mod and go.sum lack of the selected
// versions.
func (w *workspace) compile(how string, arguments ...string) *exec.Cmd {
	return w.command(append([]string{how, "-mod=mod", "-trimpath"}, arguments...)...)
}

// file is the path of one of the copy's files.
func (w *workspace) file(name string) string {
	return filepath.Join(w.folder, filepath.FromSlash(name))
}

// add copies our files beside theirs.
func (w *workspace) add(from, to string) {
	w.t.Helper()
	require.NoError(w.t, os.CopyFS(w.file(to), os.DirFS(from)))
}

// replace puts one text, which must be in the file exactly once, for another.
func (w *workspace) replace(name, before, after string) {
	w.t.Helper()
	content, err := os.ReadFile(w.file(name))
	require.NoError(w.t, err)
	require.Equal(w.t, 1, strings.Count(string(content), before), "%s of %s has another shape than was expected: %q", name, w.pin.module, before)
	require.NoError(w.t, os.WriteFile(w.file(name), []byte(strings.Replace(string(content), before, after, 1)), 0o644))
}

// rename puts "client" before the names of functions, and of methods given as "type.Name", where
// they are declared. Their callers then find what has the old name: ours.
func (w *workspace) rename(name string, functions ...string) {
	w.t.Helper()
	content, err := os.ReadFile(w.file(name))
	require.NoError(w.t, err)
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, content, 0)
	require.NoError(w.t, err)
	var edited bytes.Buffer
	at, missing := 0, slices.Clone(functions)
	for _, declared := range parsed.Decls {
		function, ok := declared.(*ast.FuncDecl)
		if !ok || !slices.Contains(functions, fullName(function)) {
			continue
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == fullName(function) })
		position := files.Position(function.Name.Pos()).Offset
		edited.Write(content[at:position])
		edited.WriteString("client")
		at = position
	}
	edited.Write(content[at:])
	require.Empty(w.t, missing, "%s of %s does not declare these", name, w.pin.module)
	require.NoError(w.t, os.WriteFile(w.file(name), edited.Bytes(), 0o644))
}

func fullName(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	if named, ok := receiver.(*ast.Ident); ok {
		return named.Name + "." + function.Name.Name
	}
	return ""
}

// build makes a test binary of one of the module's packages. The flag trimpath lets what was built
// in another temporary folder be found in the build cache.
func (w *workspace) build(packagePath string, flags ...string) (binary string) {
	w.t.Helper()
	return w.buildOf(w.pin.module+"/"+packagePath, flags...)
}

// buildOf is build for a package of another module, which finds the copy in the module's place.
func (w *workspace) buildOf(importPath string, flags ...string) (binary string) {
	w.t.Helper()
	binary = filepath.Join(w.root, strings.ReplaceAll(importPath, "/", "-")+".test")
	arguments := append([]string{"-c", "-vet=off", "-o", binary}, flags...)
	output(w.t, w.compile("test", append(arguments, importPath)...))
	return binary
}

// raceDetector is the flag -race if TRIBUTARY_RACE is set. With it, imports of a suite are compiled
// once more.
func raceDetector() []string {
	if os.Getenv("TRIBUTARY_RACE") == "" {
		return nil
	}
	return []string{"-race"}
}

// testFiles maps the tests and examples of a package to the files in which they are.
func (w *workspace) testFiles(packagePath string) map[string]string {
	w.t.Helper()
	names := map[string]string{}
	paths, err := filepath.Glob(w.file(packagePath + "/*_test.go"))
	require.NoError(w.t, err)
	for _, path := range paths {
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(w.t, err)
		for _, declared := range parsed.Decls {
			if function, ok := declared.(*ast.FuncDecl); ok && function.Recv == nil {
				names[function.Name.Name] = filepath.Base(path)
			}
		}
	}
	return names
}

// output runs a command that must succeed, with no module but those that are required.
func output(t testing.TB, command *exec.Cmd) []byte {
	t.Helper()
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, "%s: %s", command, &stderr)
	require.NotContains(t, stderr.String(), "finding module for package", "the pin lacks a requirement")
	return out
}

// useNewCache makes the tests of a package of controller-runtime use our cache, with these options.
func (w *workspace) useNewCache(packagePath, options string) {
	w.t.Helper()
	suites, err := filepath.Glob(w.file(packagePath + "/*_suite_test.go"))
	require.NoError(w.t, err)
	require.Len(w.t, suites, 1)
	content := fmt.Sprintf(`package %s

import (
	tributarycore "k8s.io/api/core/v1"
	tributarycache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tributary-go/tributary/controllerruntime"
	tributarypacked "github.com/tributary-go/tributary/store/packed"
)

// An option may name them.
var (
	_ tributarycore.Pod
	_ = tributarypacked.DefaultHot
)

func init() { tributarycache.NewOurs = controllerruntime.NewCacheWith(%s) }
`, packageOf(w.t, suites[0]), options)
	require.NoError(w.t, os.WriteFile(w.file(packagePath+"/tributary_test.go"), []byte(content), 0o644))
}

// packageOf returns the name of a file's package.
func packageOf(t testing.TB, file string) string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
	require.NoError(t, err)
	return parsed.Name.Name
}
