package static_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/sources/health"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/undelta"
)

const patience = time.Minute

var configMap = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// follow runs a reader until the test ends; it returns what it sets, each state in one line that
// differs from the last.
func follow[T store.Object](t *testing.T, o *static.Reader[T], show func(T) string) (next func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	states, done := make(chan string), make(chan error, 1)
	go func() {
		last := "none"
		done <- o.Run(ctx, func(now static.State[T]) {
			require.Equal(t, now.Objects.Len(), len(now.Declared))
			var all []string
			for _, object := range now.Declared {
				all = append(all, show(object))
			}
			if line := strings.Join(all, " "); line != last {
				last = line
				select {
				case states <- line:
				case <-ctx.Done():
				}
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return func() string {
		t.Helper()
		select {
		case line := <-states:
			return line
		case <-time.After(patience):
			require.FailNow(t, "no state came", "%+v", o.Report())
			return ""
		}
	}
}

func shown(c *corev1.ConfigMap) string { return c.Name + "=" + c.Data["key"] }

func mapOf(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: ns}\ndata: {key: %q}\n", name, value)
}

// put replaces a file by a rename. It looks old, so that it is taken at once.
func put(t *testing.T, path, content string) {
	t.Helper()
	temporary := filepath.Join(filepath.Dir(path), ".put")
	require.NoError(t, os.WriteFile(temporary, []byte(content), 0o600))
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(temporary, old, old))
	require.NoError(t, os.Rename(temporary, path))
}

func problem(t *testing.T, report func() health.Report, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, problem := range report().Problems {
			if strings.Contains(problem.Error(), text) {
				return true
			}
		}
		return false
	}, patience, time.Millisecond, text)
}

// well waits until nothing is wrong: that shows after the state.
func well(t *testing.T, report func() health.Report) {
	t.Helper()
	require.Eventually(t, func() bool { return len(report().Problems) == 0 }, patience, time.Millisecond)
}

func TestFilesOfConfigMaps(t *testing.T) {
	folder := t.TempDir()
	a, b := filepath.Join(folder, "a.yaml"), filepath.Join(folder, "b.yaml")
	put(t, b, mapOf("b", "1"))
	o := static.File(folder, manifest.Objects[corev1.ConfigMap](configMap), static.WithInterval(time.Hour))
	require.Equal(t, "file", o.Kind())
	next := follow(t, o, shown)
	require.Equal(t, "b=1", next())
	put(t, a, mapOf("a2", "1")+"---\n"+mapOf("a1", "1"))
	require.Equal(t, "a2=1 a1=1 b=1", next(), "by path, then by place in it")
	put(t, a, mapOf("a2", "2")+"---\nkind: Secret\n---\n"+mapOf("b", "stands by"))
	require.Equal(t, "a2=2 a1=1 b=1", next(), "a1 is kept, and b stays with the file that had it")
	problem(t, o.Report, a+", document 2, line 6: apiVersion and kind must be v1 and ConfigMap, ConfigMapList or List; "+
		"this may stand for ns/a1: the last good state is kept until this is mended or gone")
	problem(t, o.Report, a+": ns/b is declared by "+b+" already and stands by")
	require.True(t, o.Report().Complete)
	require.NoError(t, os.Remove(b))
	require.Equal(t, "a2=2 b=stands by a1=1", next())
	put(t, b, mapOf("b", "1"))
	require.NoError(t, os.Remove(a))
	require.Equal(t, "b=1", next())
	well(t, o.Report)
}

// What does not change is the same object, so that a store tells of nothing.
func TestObjectsStayTheSame(t *testing.T) {
	folder := t.TempDir()
	put(t, filepath.Join(folder, "a.yaml"), mapOf("a", "1"))
	o := static.File(folder, manifest.Objects[corev1.ConfigMap](configMap), static.WithInterval(time.Hour))
	next := follow(t, o, func(c *corev1.ConfigMap) string { return fmt.Sprintf("%s %p", c.Name, c) })
	first := next()
	put(t, filepath.Join(folder, "b.yaml"), mapOf("b", "1"))
	require.True(t, strings.HasPrefix(next(), first+" b "))
}

// A tool that writes in place may set the time of modification back, and what it writes may be as
// long as what was there.
func TestEditThatLooksLikeNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	put(t, path, mapOf("a", "1"))
	before, err := os.Stat(path)
	require.NoError(t, err)
	o := static.File(filepath.Dir(path), manifest.Objects[corev1.ConfigMap](configMap), static.WithInterval(20*time.Millisecond))
	next := follow(t, o, func(c *corev1.ConfigMap) string { return fmt.Sprintf("%s %p", shown(c), c) })
	first := next()
	require.Contains(t, first, "a=1 ")
	require.NoError(t, os.Chmod(path, 0o640))
	put(t, filepath.Join(filepath.Dir(path), "b.yaml"), mapOf("b", "1"))
	require.True(t, strings.HasPrefix(next(), first+" b=1 "), "what only looks different is the same object")
	require.NoError(t, os.WriteFile(path, []byte(mapOf("a", "2")), 0o600))
	require.NoError(t, os.Chtimes(path, before.ModTime(), before.ModTime()))
	require.Contains(t, next(), "a=2 ")
}

func TestCustomResourcesOfAURL(t *testing.T) {
	var answer atomic.Value
	answer.Store(`{"kind": "WidgetList", "apiVersion": "example.com/v1", "metadata": {}, "items": [
		{"metadata": {"name": "b"}, "spec": {"size": 2}}, {"metadata": {"name": "a"}, "spec": {"size": 1}}]}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, answer.Load().(string))
	}))
	t.Cleanup(server.Close)
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	o := static.HTTP(server.URL, manifest.Objects[unstructured.Unstructured](kind), static.WithInterval(5*time.Millisecond),
		static.WithTransport(&http.Transport{DisableKeepAlives: true}))
	require.Equal(t, "http", o.Kind())
	next := follow(t, o, func(u *unstructured.Unstructured) string {
		size, _, _ := unstructured.NestedInt64(u.Object, "spec", "size")
		return fmt.Sprint(u.GetAPIVersion(), " ", u.GetKind(), " ", u.GetName(), "=", size)
	})
	require.Equal(t, "example.com/v1 Widget b=2 example.com/v1 Widget a=1", next())
	answer.Store("")
	problem(t, o.Report, "a list without items says that there is nothing")
	answer.Store(`{"kind": "WidgetList", "apiVersion": "example.com/v1", "items": [{"metadata": {}}, {"kind": "Gadget", "metadata": {"name": "x"}}]}`)
	problem(t, o.Report, "item 1: a Widget needs a name")
	problem(t, o.Report, "item 2: apiVersion and kind of an item must be example.com/v1 and Widget")
	answer.Store(`{"kind": "WidgetList", "apiVersion": "example.com/v1", "items": []}`)
	require.Equal(t, "", next())
}

// The objects have a UID and a version, as copied from an API server. An edit changes neither, and
// must not be lost.
func TestIntoAStore(t *testing.T) {
	folder := t.TempDir()
	copied := func(value string) string {
		return strings.Replace(mapOf("a", value), "name: a", `name: a, uid: u, resourceVersion: "7"`, 1)
	}
	put(t, filepath.Join(folder, "a.yaml"), copied("1"))
	pushed := make(chan string)
	ctx, cancel := context.WithCancel(context.Background())
	st := undelta.New(func(now store.Snapshot[*corev1.ConfigMap]) {
		select {
		case pushed <- shown(now.Sorted()[0]):
		case <-ctx.Done():
		}
	})
	o := static.File(folder, manifest.Objects[corev1.ConfigMap](configMap), static.WithInterval(time.Millisecond))
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx, static.Into(st, nil)) }()
	require.Equal(t, "a=1", <-pushed)
	put(t, filepath.Join(folder, "a.yaml"), copied("2"))
	select {
	case now := <-pushed: // and not the same state again, though it was looked at many times
		require.Equal(t, "a=2", now)
	case <-time.After(patience):
		require.FailNow(t, "the edit is lost")
	}
	cancel()
	require.NoError(t, <-done)
}

// full is a store that takes nothing.
type full struct {
	*store.Indexer[*corev1.ConfigMap]
}

var errFull = errors.New("full")

func (full) Replace(iter.Seq2[*corev1.ConfigMap, error], func() string) error { return errFull }

func TestIntoAStoreThatRefuses(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := static.File(t.TempDir(), manifest.Objects[corev1.ConfigMap](configMap))
	require.NoError(t, o.Run(ctx, static.Into(full{}, func(err error) {
		require.ErrorIs(t, err, errFull)
		cancel()
	})))
}

// TestReportPromisesNoMoreThanWasSet: what may be missing in a state is in the report before it is
// set, and that nothing is only afterwards.
func TestReportPromisesNoMoreThanWasSet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "a.yaml")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) }))
	t.Cleanup(server.Close)
	often := static.WithInterval(5 * time.Millisecond)
	for name, o := range map[string]*static.Reader[*corev1.ConfigMap]{
		"file": static.File(filepath.Dir(path), manifest.Objects[corev1.ConfigMap](configMap), often, static.WithGrace(time.Nanosecond)),
		"http": polling(server.URL),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			put(t, path, mapOf("a", "1")+"---\nkind: Secret\n")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var promised []bool
			require.NoError(t, o.Run(ctx, func(now static.State[*corev1.ConfigMap]) {
				promised = append(promised, len(o.Report().Problems) == 0 || o.Report().Complete)
				switch {
				case now.Objects.Len() == 1:
					put(t, path, mapOf("a", "1")+"---\n"+mapOf("b", "1"))
				case now.Objects.Len() == 2 && name == "file":
					require.NoError(t, os.RemoveAll(filepath.Dir(path)))
				default:
					cancel()
				}
			}))
			if name == "file" {
				require.Equal(t, []bool{false, false, false}, promised, "one is bad, it is mended, the folder goes away")
			} else {
				require.Equal(t, []bool{false, false}, promised, "one is bad, it is mended")
				require.Empty(t, o.Report().Problems)
			}
		})
	}
}

func TestEmptyPathsAndAddressesAreRefused(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	decode := manifest.Objects[corev1.ConfigMap](configMap)
	never := func(static.State[*corev1.ConfigMap]) { require.Fail(t, "something was read") }
	require.EqualError(t, static.File("", decode).Run(ctx, never), "the manifest path is empty: give a file or a folder")
	require.ErrorContains(t, static.HTTP("", decode).Run(ctx, never), "the manifest URL is empty")
}
