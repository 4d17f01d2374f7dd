package robustness_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/gofail/code"

	"github.com/tributary-go/tributary/e2e/cluster"
)

// The member's binary differs from etcd's in three ways. Its failpoints, which are comments in the
// source, are compiled in: gofail edits a copy of the modules. The package time of the standard
// library gets a wall clock that can be set: an overlay for the compiler. And its main function is
// that of package member.

// withFailpoints are the modules whose failpoints are compiled in.
var withFailpoints = []string{"go.etcd.io/etcd/server/v3", "go.etcd.io/bbolt"}

// The changes of package time, and its additions.
const (
	readsClock  = "\tsec, nsec, mono := runtimeNow()\n"
	offsetClock = readsClock + "\tsec += jumped.Load()\n"
	jump        = `package time

import "sync/atomic"

var jumped atomic.Int64 // seconds

// Jump moves the wall clock. The monotonic clock stays, as it does if an administrator sets the time.
func Jump(d Duration) { jumped.Add(int64(d / Second)) }
`
)

// memberBinary builds the member unless the cache has it, which takes about a minute.
func memberBinary(t *testing.T) string {
	t.Helper()
	sources, err := filepath.Glob("member/*.go")
	require.NoError(t, err)
	recipe := sha256.New()
	for _, path := range append(sources, "build_test.go", filepath.Join("..", "go.mod")) {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		recipe.Write(content)
	}
	name := fmt.Sprintf("etcd-with-faults-%s-%x", runtime.Version(), recipe.Sum(nil)[:6])
	return cluster.Cached(t, name, func(into string) error { return buildMember(t.TempDir(), into) })
}

func buildMember(folder, into string) error {
	goMod, err := os.ReadFile(filepath.Join("..", "go.mod"))
	if err != nil {
		return err
	}
	for i, module := range withFailpoints {
		from, err := cluster.Go(".", "list", "-m", "-f", "{{.Dir}}", module)
		if err != nil {
			return err
		}
		to := filepath.Join(folder, fmt.Sprint("module", i))
		if err := errors.Join(os.CopyFS(to, os.DirFS(strings.TrimSpace(from))), enableFailpoints(to)); err != nil {
			return err
		}
		goMod = fmt.Appendf(goMod, "\nreplace %s => %s\n", module, to)
	}
	goSum, err := os.ReadFile(filepath.Join("..", "go.sum"))
	if err != nil {
		return err
	}
	overlay, err := overlayTime(folder)
	if err != nil {
		return err
	}
	modfile := filepath.Join(folder, "go.mod")
	if err := errors.Join(os.WriteFile(modfile, goMod, 0o644), os.WriteFile(filepath.Join(folder, "go.sum"), goSum, 0o644)); err != nil {
		return err
	}
	_, err = cluster.Go(".", "build", "-trimpath", "-tags=faults", "-ldflags=-s -w", "-modfile="+modfile, "-overlay="+overlay, "-o", into, "./member")
	return err
}

// enableFailpoints edits the Go files below a folder.
func enableFailpoints(folder string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		before, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var after, bindings bytes.Buffer
		points, err := code.ToFailpoints(&after, bytes.NewReader(before))
		if err != nil || len(points) == 0 {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, before, parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		if err := code.NewBinding(parsed.Name.Name, points).Write(&bindings); err != nil {
			return err
		}
		return errors.Join(os.WriteFile(path, after.Bytes(), 0o644),
			os.WriteFile(strings.TrimSuffix(path, ".go")+".fail.go", bindings.Bytes(), 0o644))
	})
}

// overlayTime returns the path of an overlay for package time.
func overlayTime(folder string) (path string, err error) {
	root, err := cluster.Go(".", "env", "GOROOT")
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(root), "src", "time", "time.go")
	before, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(before), readsClock); n != 1 {
		return "", fmt.Errorf("%s reads the clock in %d places: adapt what is replaced", original, n)
	}
	changed, added := filepath.Join(folder, "time.go"), filepath.Join(folder, "jump.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		original: changed, filepath.Join(filepath.Dir(original), "jump.go"): added,
	}})
	path = filepath.Join(folder, "overlay.json")
	return path, errors.Join(err, os.WriteFile(path, overlay, 0o644),
		os.WriteFile(changed, []byte(strings.Replace(string(before), readsClock, offsetClock, 1)), 0o644),
		os.WriteFile(added, []byte(jump), 0o644))
}
