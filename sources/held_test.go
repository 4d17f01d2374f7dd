package sources_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/static"
)

// declared is a place that declares items, whatever its form: a list or documents in a file, or
// behind a URL.
type declared struct {
	*rig
	set func(items ...string)
}

func placesOfItems() map[string]func(*testing.T) declared {
	inFile := func(join func(items ...string) string) func(*testing.T) declared {
		return func(t *testing.T) declared {
			path := filepath.Join(folder(t), "a.yaml")
			put(t, path, podList())
			r := start(t, sources.File(filepath.Dir(path), static.WithInterval(time.Hour)))
			r.expect("ADD file")
			return declared{r, func(items ...string) { put(t, path, join(items...)) }}
		}
	}
	return map[string]func(*testing.T) declared{
		"a PodList in a file": inFile(podList),
		"a List in a file": inFile(func(items ...string) string {
			text := strings.ReplaceAll(podList(items...), `{"metadata"`, `{"apiVersion":"v1","kind":"Pod","metadata"`)
			return strings.Replace(text, "PodList", "List", 1)
		}),
		"documents in a file": inFile(func(items ...string) string {
			var documents []string
			for _, item := range items {
				documents = append(documents, strings.Replace(item, `{"metadata"`, `{"apiVersion":"v1","kind":"Pod","metadata"`, 1))
			}
			return strings.Join(documents, "\n---\n")
		}),
		"a URL": func(t *testing.T) declared {
			server := serve(t, body(podList()))
			r := polling(t, server.URL)
			r.expect("ADD http")
			return declared{r, func(items ...string) { server.now(body(podList(items...))) }}
		},
	}
}

// step is what a place declares next, what is told, and what Status says: an empty problem is none.
type step struct {
	items   []string
	told    []string
	problem string
}

func TestBadItemCostsItself(t *testing.T) {
	a, b, c := item("a", "v1"), item("b", "v1"), item("c", "v1")
	nameless, broken := item("", "v1"), `{"metadata":{"name":["b"]},"spec":{}}`
	items := func(items ...string) []string { return items }
	for name, steps := range map[string][]step{
		"an item without a name was there before": {
			{items(a, b, nameless), items("ADD a=v1 b=v1"), "needs a name"},
			{items(a, nameless), items("REMOVE b=v1"), "needs a name"},
			{items(nameless, c), items("REMOVE a=v1", "ADD c=v1"), "needs a name"},
			{items(c), nil, ""},
		},
		"an item keeps what its name says": {
			{items(a, b, c), items("ADD a=v1 b=v1 c=v1"), ""},
			{items(a, item("b", "")), items("REMOVE c=v1"), "until this is mended or gone, the last good default/b-node-1 is kept"},
			{items(item("b", "")), items("REMOVE a=v1"), "the last good default/b-node-1 is kept"},
			{items(item("b", ""), c), items("ADD c=v1"), "the last good default/b-node-1 is kept"},
			{items(c), items("REMOVE b=v1"), ""},
		},
		"an item that was never good keeps nothing": {
			{items(a, b, item("bad", "")), items("ADD a=v1 b=v1"), "default/bad-node-1"},
			{items(a, item("bad", "")), items("REMOVE b=v1"), "default/bad-node-1"},
			{items(item("bad", ""), c), items("REMOVE a=v1", "ADD c=v1"), "default/bad-node-1"},
		},
		"an item of an unreadable name keeps what went when it came": {
			{items(a, b, c), items("ADD a=v1 b=v1 c=v1"), ""},
			{items(a, broken, c), nil, "this may stand for default/b-node-1"},
			{items(broken, c), items("REMOVE a=v1"), "this may stand for default/b-node-1: the last good state is kept until this is mended or gone"},
			{items(broken, broken), nil, "this may stand for default/c-node-1"},
			{items(broken, b), items("REMOVE c=v1"), "a list where a string is expected"},
			{items(broken, a), items("REMOVE b=v1", "ADD a=v1"), "a list where a string is expected"},
		},
		"its edits are the same item": {
			{items(a, b), items("ADD a=v1 b=v1"), ""},
			{items(a, broken), nil, "default/b-node-1"},
			{items(a, nameless), nil, "this may stand for default/b-node-1"},
			{items(a, item("b", "v2")), items("REMOVE b=v1", "ADD b=v2"), ""},
		},
		"an item of another kind": {
			{items(a, b, `{"kind":"Service","apiVersion":"v1","metadata":{"name":"b"}}`), items("ADD a=v1 b=v1"), "kind"},
			{items(a, `{"kind":"Service","apiVersion":"v1","metadata":{"name":"b"}}`), items("REMOVE b=v1"), "kind"},
		},
	} {
		for form, begin := range placesOfItems() {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				place := begin(t)
				source := place.Status()[0].Source
				for i, step := range steps {
					place.set(step.items...)
					for _, want := range step.told {
						got := strings.ReplaceAll(place.next(), "-node-1", "")
						require.Equal(t, want, strings.Replace(got, " "+source, "", 1), "step %d: %+v", i+1, place.Status())
					}
					if step.problem == "" {
						place.healthy()
					} else {
						place.problem(step.problem)
					}
				}
				nothing(place.rig)
			})
		}
	}
}

// TestFileThatCannotBeReadNamesItsPods: Status says which pods run on behalf of a manifest that is
// not there to be read.
func TestFileThatTurnsBadNamesItsPods(t *testing.T) {
	path := filepath.Join(folder(t), "a.yaml")
	var items []string
	for i := range 12 {
		items = append(items, item(fmt.Sprintf("p%02d", i), "v1"))
	}
	put(t, path, podList(items...))
	r := watching(t, filepath.Dir(path))
	require.Len(t, r.update().Pods, 12)
	put(t, path, "{")
	require.Contains(t, r.problem("a.yaml"), "default/p08-node-1, default/p09-node-1 and 2 more: the last good state is kept")
	put(t, path, podList(items[1:]...))
	r.expect("REMOVE file p00-node-1=v1")
	r.healthy()
}

// TestAGoodDeclarationBeatsALastKnownGoodOne: the kubelet runs the one good declaration of a pod,
// and so would a restarted agent.
func TestAGoodDeclarationBeatsALastKnownGoodOne(t *testing.T) {
	v1, v2, v3 := manifestOf("p", "v1"), manifestOf("p", "v2"), manifestOf("p", "v3")
	for name, spoil := range map[string]func(t *testing.T, path string){
		"truncated":     func(t *testing.T, path string) { put(t, path, "") },
		"commented out": func(t *testing.T, path string) { put(t, path, "# "+strings.ReplaceAll(v1, "\n", "\n# ")) },
		"mistyped":      func(t *testing.T, path string) { put(t, path, strings.Replace(v1, "containers", "contianers", 1)) },
		"no text":       func(t *testing.T, path string) { put(t, path, "\x00") },
		"unreadable": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Symlink(path, path)) // a loop
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := folder(t)
			in := func(name string) string { return filepath.Join(path, name) }
			a, b, copied := in("a.yaml"), in("b.yaml"), in("a-old.yaml")
			put(t, a, v1)
			r := watching(t, path)
			safe := func() {
				t.Helper()
				require.Eventually(t, func() bool { return r.SafeToPrune(sources.FileSource) }, patience, time.Millisecond)
			}
			r.expect("ADD file p-node-1=v1")
			spoil(t, a)
			require.Contains(t, r.problem("a.yaml"), "default/p-node-1")
			safe()
			put(t, b, v2)
			r.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
			r.problem("meanwhile default/p-node-1 is declared by " + b)
			r.healthyBut(a)
			safe()

			put(t, a, v3) // the file that has the name keeps it
			r.problem("a.yaml: default/p-node-1 is declared by " + b + " already and stands by")
			put(t, b, "{")
			r.expect("REMOVE file p-node-1=v2", "ADD file p-node-1=v3")
			safe()
			spoil(t, a) // the last known good pod of the file that had the name last
			r.problem("a.yaml")
			put(t, b, v2)
			r.expect("REMOVE file p-node-1=v3", "ADD file p-node-1=v2")
			require.NoError(t, os.Remove(b))
			r.expect("REMOVE file p-node-1=v2", "ADD file p-node-1=v3") // nothing else declares it
			safe()

			put(t, copied, v1) // a copy counts while its original is bad, and keeps the name
			r.expect("REMOVE file p-node-1=v3", "ADD file p-node-1=v1")
			put(t, a, v3)
			r.problem("a.yaml: default/p-node-1 is declared by " + copied + " already and stands by")
			require.NoError(t, os.Remove(copied))
			r.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v3")
			nothing(r)
		})
	}
}
