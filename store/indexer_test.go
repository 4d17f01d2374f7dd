package store_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/storetest"
)

var pod = storetest.Pod

func onNode(p *corev1.Pod, node string) *corev1.Pod {
	p.Spec.NodeName = node
	return p
}

var byNode = store.NewIndex("node", func(p *corev1.Pod) []string {
	if p.Spec.NodeName == "" {
		return nil
	}
	return []string{p.Spec.NodeName}
})

// byVersionDigits has many values per object, repeated ones too, of a type that is not a string.
var byVersionDigits = store.NewIndex("digits", func(p *corev1.Pod) (digits []rune) {
	return []rune(p.ResourceVersion)
})

func TestIndexerConforms(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Rig {
		x := store.NewIndexer(byNode, byVersionDigits)
		return storetest.Rig{
			Store:           x,
			Objects:         func() []*corev1.Pod { return x.Snapshot().Sorted() },
			ResourceVersion: func() string { return x.Snapshot().ResourceVersion() },
		}
	})
}

func TestZeroIndexer(t *testing.T) {
	var x store.Indexer[*corev1.Pod]
	require.Zero(t, x.Snapshot().Len())
	require.Empty(t, x.Snapshot().ResourceVersion())
	require.NoError(t, x.Bookmark("4"))
	require.NoError(t, x.Add(pod("a", 5)))
	got, ok := x.Snapshot().Get("ns/a")
	require.True(t, ok)
	require.Equal(t, "5", got.ResourceVersion)
}

// TestKeepNameless: by default, an object without a name has no key.
func TestKeepNameless(t *testing.T) {
	var x store.Indexer[*corev1.Pod]
	nameless := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "web-"}}
	require.EqualError(t, x.Add(nameless), "store: the object has no metadata.name")
	require.ErrorContains(t, x.Replace(store.Items(nameless), store.At("1")), "no metadata.name")
	x.KeepNameless()
	require.NoError(t, x.Replace(store.Items(nameless, pod("a", 1)), store.At("1")))
	got, ok := x.Get("ns/")
	require.True(t, ok)
	require.Same(t, nameless, got)
	require.NoError(t, x.Add(nameless.DeepCopy()))
	require.Equal(t, 2, x.Snapshot().Len())
	require.NoError(t, x.Delete(nameless))
	require.Equal(t, 1, x.Snapshot().Len())
	require.ErrorContains(t, x.Add(nil), "nil")
}

func TestZeroSnapshot(t *testing.T) {
	var s store.Snapshot[*corev1.Pod]
	_, ok := s.Get("ns/a")
	require.False(t, ok)
	require.Empty(t, s.Sorted())
	require.Empty(t, maps.Collect(s.All()))
	require.Zero(t, byNode.Len(s, "n1"))
}

func TestIndexFollowsObjects(t *testing.T) {
	x := store.NewIndexer(byNode)
	require.NoError(t, x.Add(onNode(pod("a", 1), "n1")))
	require.NoError(t, x.Add(onNode(pod("b", 2), "n1")))
	require.NoError(t, x.Add(pod("pending", 3)))
	before := x.Snapshot()
	require.NoError(t, x.Update(onNode(pod("a", 4), "n2")))
	require.NoError(t, x.Delete(pod("b", 5)))

	require.Equal(t, []string{"a", "b"}, names(byNode, before, "n1"))
	require.Equal(t, map[string]int{"n1": 2}, maps.Collect(byNode.Values(before)))
	require.Equal(t, []string{"a"}, names(byNode, x.Snapshot(), "n2"))
	require.Equal(t, map[string]int{"n2": 1}, maps.Collect(byNode.Values(x.Snapshot())), "an empty value is forgotten")
}

func TestUnknownIndexPanicsWithItsName(t *testing.T) {
	x := store.NewIndexer[*corev1.Pod]()
	require.NoError(t, x.Add(pod("a", 1)))
	require.PanicsWithValue(t, `store: index "node" is not one of this store's: pass it to NewIndexer or AddIndexes`,
		func() { byNode.Len(x.Snapshot(), "n1") })
}

func TestReplaceKeepsPointersOfUnchangedObjects(t *testing.T) {
	x := store.NewIndexer(byNode)
	a, b := onNode(pod("a", 1), "n1"), onNode(pod("b", 2), "n1")
	require.NoError(t, x.Replace(store.Items(a, b), store.At("2")))
	before := x.Snapshot()
	require.NoError(t, x.Replace(store.Items(a.DeepCopy(), onNode(pod("b", 7), "n1")), store.At("9")))

	got, _ := x.Snapshot().Get("ns/a")
	require.Same(t, a, got)
	var changed []string
	for c := range store.Diff(before, x.Snapshot()) {
		changed = append(changed, c.Key+" "+c.Old.ResourceVersion+">"+c.New.ResourceVersion)
	}
	require.Equal(t, []string{"ns/b 2>7"}, changed)
}

func TestOtherContentUnderTheSameVersionIsAChange(t *testing.T) {
	x := store.NewIndexer(byNode)
	on := func(node string) *corev1.Pod { return onNode(pod("a", 1), node) }
	require.NoError(t, x.Replace(store.Items(on("one"), pod("b", 2)), store.At("5")))
	before := x.Snapshot()
	require.NoError(t, x.Replace(store.Items(on("two"), pod("b", 2)), store.At("6")))
	var changes []store.Change[*corev1.Pod]
	for c := range store.Diff(before, x.Snapshot()) {
		changes = append(changes, c)
	}
	require.Equal(t, []store.Change[*corev1.Pod]{{Key: "ns/a", Old: on("one"), New: on("two")}}, changes)
	require.Equal(t, []string{"a"}, names(byNode, x.Snapshot(), "two"))
	c, err := x.Put(on("three"))
	require.NoError(t, err)
	require.False(t, c.Unchanged())
	held, _ := x.Snapshot().Get("ns/a")
	c, err = x.Put(on("three"))
	require.NoError(t, err)
	require.True(t, c.Unchanged())
	require.Same(t, held, c.New)
}

func TestDiffTellsARecreatedObject(t *testing.T) {
	x := store.NewIndexer[*corev1.Pod]()
	require.NoError(t, x.Add(pod("a", 1)))
	before := x.Snapshot()
	again := pod("a", 5)
	again.UID = types.UID("another")
	require.NoError(t, x.Replace(store.Items(again), store.At("5")))
	var got []string
	for c := range store.Diff(before, x.Snapshot()) {
		got = append(got, fmt.Sprintf("%s deleted=%t added=%t", c.Key, c.Deleted(), c.Added()))
	}
	require.Equal(t, []string{"ns/a deleted=true added=false", "ns/a deleted=false added=true"}, got)
}

// TestWritesTellTheirChange: what Put and Remove return is what a reader sees.
func TestWritesTellTheirChange(t *testing.T) {
	x := store.NewIndexer(byNode)
	first, replay, second, recreated := pod("a", 1), pod("a", 1), pod("a", 2), pod("a", 3)
	recreated.UID = "another"
	for _, step := range []struct {
		name                                string
		do                                  func(*corev1.Pod) (store.Change[*corev1.Pod], error)
		obj, old, now                       *corev1.Pod
		added, deleted, recreated, unchange bool
	}{
		{name: "new", do: x.Put, obj: first, now: first, added: true},
		{name: "replay", do: x.Put, obj: replay, old: first, now: first, unchange: true},
		{name: "newer", do: x.Put, obj: second, old: first, now: second},
		{name: "another object", do: x.Put, obj: recreated, old: second, now: recreated, recreated: true},
		{name: "deletion", do: x.Remove, obj: pod("a", 4), old: recreated, deleted: true},
		{name: "deletion of nothing", do: x.Remove, obj: pod("a", 5), unchange: true},
	} {
		c, err := step.do(step.obj)
		require.NoError(t, err, step.name)
		require.Equal(t, "ns/a", c.Key, step.name)
		require.Same(t, step.old, c.Old, step.name)
		require.Same(t, step.now, c.New, step.name)
		require.Equal(t, []bool{step.added, step.deleted, step.recreated, step.unchange},
			[]bool{c.Added(), c.Deleted(), c.Recreated(), c.Unchanged()}, step.name)
		held, _ := x.Snapshot().Get("ns/a")
		require.Same(t, step.now, held, step.name)
		require.Equal(t, step.obj.ResourceVersion, x.Snapshot().ResourceVersion(), step.name)
	}
	_, err := x.Put(&corev1.Pod{})
	require.Error(t, err)
	_, err = x.Remove(nil)
	require.Error(t, err)
}

// TestModel keeps every snapshot of a random history, and compares objects, indexes and differences
// at the end with plain maps and with a second, dumb computation.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	type moment struct {
		snapshot store.Snapshot[*corev1.Pod]
		objects  map[string]*corev1.Pod
		version  string
	}
	x := store.NewIndexer(byNode, byVersionDigits)
	history := []moment{{objects: map[string]*corev1.Pod{}}}
	for version := 1; version <= 400; version++ {
		objects := maps.Clone(history[len(history)-1].objects)
		p := onNode(pod(fmt.Sprintf("p%d", random.IntN(30)), version), fmt.Sprintf("n%d", random.IntN(4)))
		key := store.KeyOf(p)
		switch random.IntN(10) {
		case 0:
			maps.DeleteFunc(objects, func(string, *corev1.Pod) bool { return random.IntN(3) == 0 })
			objects[key] = p
			items := slices.Collect(maps.Values(objects)) // in no order
			switch random.IntN(3) {
			case 0: // in the order of keys
				slices.SortFunc(items, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
			case 1: // with one of them twice
				items = append(items, items[random.IntN(len(items))])
			}
			require.NoError(t, x.Replace(store.Items(items...), store.At(strconv.Itoa(version))))
		case 1, 2, 3:
			require.NoError(t, x.Delete(p))
			delete(objects, key)
		case 4:
			require.NoError(t, x.Bookmark(p.ResourceVersion))
		default:
			require.NoError(t, x.Update(p))
			objects[key] = p
		}
		history = append(history, moment{x.Snapshot(), objects, strconv.Itoa(version)})
	}
	for i, m := range history[1:] {
		require.Equal(t, m.objects, maps.Collect(m.snapshot.All()))
		require.Equal(t, m.version, m.snapshot.ResourceVersion())
		requireIndex(t, byNode, m.snapshot, func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
		requireIndex(t, byVersionDigits, m.snapshot, func(p *corev1.Pod) []rune { return []rune(p.ResourceVersion) })
		requireDiff(t, history[i].snapshot, m.snapshot)
		requireDiff(t, m.snapshot, history[random.IntN(len(history))].snapshot)
	}
}

// TestManyUnderOneValue: an index is right where a value has more objects than one node holds,
// written singly, listed first and listed again.
func TestManyUnderOneValue(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 4))
	for name, fill := range map[string]func(*store.Indexer[*corev1.Pod], []*corev1.Pod) error{
		"written": func(x *store.Indexer[*corev1.Pod], pods []*corev1.Pod) error {
			for _, p := range pods {
				if err := x.Add(p); err != nil {
					return err
				}
			}
			return nil
		},
		"listed": func(x *store.Indexer[*corev1.Pod], pods []*corev1.Pod) error {
			return x.Replace(store.Items(pods...), store.At("1"))
		},
		"listed again": func(x *store.Indexer[*corev1.Pod], pods []*corev1.Pod) error {
			if err := x.Add(pod("gone", 1)); err != nil {
				return err
			}
			return x.Replace(store.Items(pods...), store.At("1"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := store.NewIndexer(byNode, byVersionDigits)
			want := map[string]*corev1.Pod{}
			var pods []*corev1.Pod
			for i := range 600 { // some twice: the last one counts
				p := onNode(pod(fmt.Sprintf("p%d", random.IntN(500)), i+1), fmt.Sprintf("n%d", random.IntN(2)))
				pods = append(pods, p)
				want[store.KeyOf(p)] = p
			}
			require.NoError(t, fill(x, pods))
			check := func() {
				require.Equal(t, want, maps.Collect(x.Snapshot().All()))
				requireIndex(t, byNode, x.Snapshot(), func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
				requireIndex(t, byVersionDigits, x.Snapshot(), func(p *corev1.Pod) []rune { return []rune(p.ResourceVersion) })
			}
			check()
			for i := range 1500 {
				p := onNode(pod(fmt.Sprintf("p%d", random.IntN(500)), 1000+i), fmt.Sprintf("n%d", random.IntN(2)))
				if random.IntN(3) > 0 {
					require.NoError(t, x.Delete(p))
					delete(want, store.KeyOf(p))
				} else {
					require.NoError(t, x.Update(p))
					want[store.KeyOf(p)] = p
				}
			}
			check()
		})
	}
}

// requireIndex computes the index from the objects and compares.
func requireIndex[K comparable](t *testing.T, index *store.Index[*corev1.Pod, K], s store.Snapshot[*corev1.Pod], values func(*corev1.Pod) []K) {
	t.Helper()
	want := map[K]map[string]bool{}
	for key, p := range s.All() {
		for _, v := range values(p) {
			if want[v] == nil {
				want[v] = map[string]bool{}
			}
			want[v][key] = true
		}
	}
	got := map[K]map[string]bool{}
	for v, n := range index.Values(s) {
		got[v] = map[string]bool{}
		for p := range index.Objects(s, v) {
			held, _ := s.Get(store.KeyOf(p))
			require.Same(t, held, p, "an index holds the objects themselves")
			got[v][store.KeyOf(p)] = true
		}
		require.Len(t, got[v], n)
		require.Equal(t, n, index.Len(s, v))
	}
	require.Equal(t, want, got)
}

func requireDiff(t *testing.T, before, after store.Snapshot[*corev1.Pod]) {
	t.Helper()
	want, got := map[string][2]*corev1.Pod{}, map[string][2]*corev1.Pod{}
	for key, old := range before.All() {
		if now, _ := after.Get(key); now != old {
			want[key] = [2]*corev1.Pod{old, now}
		}
	}
	for key, now := range after.All() {
		if _, ok := before.Get(key); !ok {
			want[key] = [2]*corev1.Pod{nil, now}
		}
	}
	for c := range store.Diff(before, after) {
		require.NotContains(t, got, c.Key)
		got[c.Key] = [2]*corev1.Pod{c.Old, c.New}
	}
	require.Equal(t, want, got)
}

// TestReadersSeeWholeStates: while a writer moves one object between nodes, every snapshot has it
// on exactly one.
func TestReadersSeeWholeStates(t *testing.T) {
	x := store.NewIndexer(byNode)
	require.NoError(t, x.Add(onNode(pod("a", 1), "n0")))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				s := x.Snapshot()
				if found := byNode.Len(s, "n0") + byNode.Len(s, "n1"); found != 1 {
					t.Errorf("%d pods at version %s", found, s.ResourceVersion())
					return
				}
			}
		})
	}
	for i := range 2000 {
		require.NoError(t, x.Update(onNode(pod("a", i+2), fmt.Sprintf("n%d", i%2))))
	}
	close(done)
	readers.Wait()
}

// TestReadersDoNotWaitForReplace reads in the middle of a list that has not ended.
func TestReadersDoNotWaitForReplace(t *testing.T) {
	x := store.NewIndexer(byNode)
	require.NoError(t, x.Add(pod("old", 1)))
	items := func(yield func(*corev1.Pod, error) bool) {
		yield(pod("new", 2), nil)
		require.Equal(t, []string{"old"}, all(x.Snapshot()))
	}
	require.NoError(t, x.Replace(items, store.At("2")))
	require.Equal(t, []string{"new"}, all(x.Snapshot()))
}

func names[K comparable](index *store.Index[*corev1.Pod, K], s store.Snapshot[*corev1.Pod], value K) (names []string) {
	for p := range index.Objects(s, value) {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

func all(s store.Snapshot[*corev1.Pod]) (names []string) {
	for _, p := range s.Sorted() {
		names = append(names, p.Name)
	}
	return names
}

// TestSetResourceVersion: from then on the objects' versions say nothing about the content's.
func TestSetResourceVersion(t *testing.T) {
	x := store.NewIndexer[*corev1.Pod]()
	require.NoError(t, x.Add(pod("a", 5)))
	require.Equal(t, "5", x.ResourceVersion())
	before := x.Snapshot()
	x.Entries().SetResourceVersion("3")
	require.Equal(t, "3", x.ResourceVersion(), "an older one")
	require.Equal(t, "3", x.Snapshot().ResourceVersion())
	require.Equal(t, "5", before.ResourceVersion())
	require.NoError(t, x.Update(pod("a", 7)))
	require.NoError(t, x.Delete(pod("a", 8)))
	require.NoError(t, x.Bookmark("9"))
	require.Equal(t, "3", x.ResourceVersion())
	require.Zero(t, x.Snapshot().Len())
	x.Entries().SetResourceVersion("")
	require.Empty(t, x.Snapshot().ResourceVersion())
	require.NoError(t, x.Replace(store.Items(pod("b", 11)), store.At("12")))
	require.Equal(t, "12", x.ResourceVersion())
}

// TestVersionsThatAreNoNumbers: an aggregated API server may have such. None leaps, however long.
func TestVersionsThatAreNoNumbers(t *testing.T) {
	x := store.NewIndexer[*corev1.Pod]()
	for _, version := range []string{"object", "another-object", "7", "the-last-object"} {
		require.NoError(t, x.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: version}}))
		require.Equal(t, version, x.Snapshot().ResourceVersion())
	}
}
