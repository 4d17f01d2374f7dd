package store_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/storetest"
)

// shelf is a store of pods whose entries are metadata, with the rest of the pod in an annotation.
type shelf struct {
	*store.Indexer[*corev1.Pod]
	opened atomic.Int64
	told   bool // the pods of new entries are told
}

// Arrive implements [store.Form].
func (s *shelf) Arrive(_ string, item, held store.Entry) (store.Entry, store.Reading, error) {
	pod := item.(*corev1.Pod)
	entry := &metav1.PartialObjectMetadata{ObjectMeta: *pod.ObjectMeta.DeepCopy()}
	entry.Annotations = map[string]string{"node": pod.Spec.NodeName}
	if held != nil && equality.Semantic.DeepEqual(held, entry) {
		return held, nil, nil
	}
	if !s.told {
		return entry, nil, nil
	}
	return entry, told{pod}, nil
}

// told is the pod of a new entry.
type told struct{ pod *corev1.Pod }

func (t told) Labels() map[string]string { return t.pod.Labels }

func (t told) Field(path string) string {
	if path != "spec.nodeName" {
		panic(path)
	}
	return t.pod.Spec.NodeName
}

func (t told) Object() store.Object { return t.pod }
func (t told) Done()                {}

// Open implements [store.Form].
func (s *shelf) Open(entry store.Entry) *corev1.Pod {
	s.opened.Add(1)
	meta := entry.(*metav1.PartialObjectMetadata).ObjectMeta
	pod := &corev1.Pod{ObjectMeta: *meta.DeepCopy(), Spec: corev1.PodSpec{NodeName: meta.Annotations["node"]}}
	pod.Annotations = nil
	return pod
}

// Read implements [store.Form].
func (s *shelf) Read(entry store.Entry) store.Reading { return told{s.Open(entry)} }

var (
	shelfByNode  = store.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
	shelfByWords = store.NewIndex("words", func(p *corev1.Pod) []int { return slices.Repeat([]int{len(p.Spec.NodeName), 7}, 2) })
)

func newShelf(told bool, indexes ...store.AnyIndex[*corev1.Pod]) *shelf {
	s := &shelf{told: told}
	s.Indexer = store.NewFormed(s, indexes...)
	return s
}

func shelfPod(name string, version int, node string) *corev1.Pod {
	pod := storetest.Pod(name, version)
	pod.Namespace = "ns-" + name[len(name)-1:]
	pod.Labels = map[string]string{"node": node}
	pod.Spec.NodeName = node
	return pod
}

// TestAClosedIndexerIsAnIndexer makes the same changes to both, and reads both in all ways.
func TestAClosedIndexerIsAnIndexer(t *testing.T) {
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprint("told ", told), func(t *testing.T) {
			indexes := []store.AnyIndex[*corev1.Pod]{
				shelfByNode, shelfByWords, store.ByNamespace[*corev1.Pod](), store.ByLabel[*corev1.Pod]("node"),
			}
			closed, plain := newShelf(told, indexes...), store.NewIndexer(indexes...)
			random := rand.New(rand.NewPCG(1, 3))
			was, before := closed.Snapshot(), plain.Snapshot()
			for version := 1; version < 150; version++ {
				pod := shelfPod(fmt.Sprint("pod-", random.IntN(40)), version, fmt.Sprint("node-", random.IntN(12)))
				if random.IntN(9) == 0 {
					pod.UID = "another"
				}
				switch random.IntN(6) {
				case 0:
					require.NoError(t, closed.Delete(pod))
					require.NoError(t, plain.Delete(pod))
				case 1:
					kept := slices.DeleteFunc(plain.Snapshot().Sorted(), func(*corev1.Pod) bool { return random.IntN(4) == 0 })
					version := func() string { return strconv.Itoa(version) }
					require.NoError(t, plain.Replace(store.Items(append(kept, pod)...), version))
					require.NoError(t, closed.Replace(store.Items(append(kept, pod)...), version))
				default:
					require.NoError(t, closed.Update(pod))
					require.NoError(t, plain.Update(pod))
				}
				now, after := closed.Snapshot(), plain.Snapshot()
				requireEqualContent(t, after, now)
				require.Equal(t, changes(store.Diff(before, after)), changes(store.Diff(was, now)))
				if version%3 == 0 {
					was, before = now, after
				}
				requireEqualContent(t, before, was)
			}
			require.Equal(t, changes(store.Diff(store.Snapshot[*corev1.Pod]{}, before)), changes(store.Diff(store.Snapshot[*corev1.Pod]{}, was)))
			require.Equal(t, changes(store.Diff(before, store.Snapshot[*corev1.Pod]{})), changes(store.Diff(was, store.Snapshot[*corev1.Pod]{})))
			require.Len(t, changes(store.Diff(before, was)), before.Len(), "objects of another store are other objects")
		})
	}
}

func changes(diff func(func(store.Change[*corev1.Pod]) bool)) (all []string) {
	for c := range diff {
		all = append(all, fmt.Sprint(c.Key, " ", state(c.Old), " ", state(c.New)))
	}
	slices.Sort(all)
	return all
}

func state(pod *corev1.Pod) string {
	if pod == nil {
		return "-"
	}
	return fmt.Sprint(pod.UID, "@", pod.ResourceVersion, " ", pod.Spec.NodeName)
}

func requireEqualContent(t *testing.T, want, got store.Snapshot[*corev1.Pod]) {
	t.Helper()
	require.Equal(t, want.ResourceVersion(), got.ResourceVersion())
	require.Equal(t, want.Len(), got.Len())
	require.Equal(t, want.Sorted(), got.Sorted())
	require.Equal(t, maps.Collect(want.All()), maps.Collect(got.All()))
	require.ElementsMatch(t, slices.Collect(want.Keys()), slices.Collect(got.Keys()))
	require.ElementsMatch(t, slices.Collect(maps.Keys(maps.Collect(want.All()))), slices.Collect(want.Keys()))
	for key, pod := range want.All() {
		found, ok := got.Get(key)
		require.True(t, ok)
		require.Equal(t, pod, found)
	}
	require.Equal(t, maps.Collect(shelfByNode.Values(want)), maps.Collect(shelfByNode.Values(got)))
	require.Equal(t, maps.Collect(shelfByWords.Values(want)), maps.Collect(shelfByWords.Values(got)))
	for node := range shelfByNode.Values(want) {
		require.ElementsMatch(t, slices.Collect(shelfByNode.Objects(want, node)), slices.Collect(shelfByNode.Objects(got, node)))
		selector := labels.SelectorFromSet(labels.Set{"node": node})
		require.ElementsMatch(t, slices.Collect(want.Select("", selector)), slices.Collect(got.Select("", selector)))
		require.ElementsMatch(t, slices.Collect(want.Select("ns-1", selector)), slices.Collect(got.Select("ns-1", selector)))
	}
	require.ElementsMatch(t, slices.Collect(want.InNamespace("ns-2")), slices.Collect(got.InNamespace("ns-2")))
}

// TestClosedEntriesRest: writes whose objects are told, and reads of the identity, open nothing.
func TestClosedEntriesRest(t *testing.T) {
	s := newShelf(true, shelfByNode, store.ByNamespace[*corev1.Pod]())
	for i := range 100 {
		err := s.Add(shelfPod(fmt.Sprint("pod-", i), i, "node"))
		require.NoError(t, err)
	}
	err := s.Add(shelfPod("pod-7", 200, "node"))
	require.NoError(t, err)
	now := s.Snapshot()
	require.Equal(t, 100, now.Len())
	require.Equal(t, 100, shelfByNode.Len(now, "node"))
	require.Equal(t, s.Snapshot(), now, "one snapshot serves until the next write")
	require.Len(t, slices.Collect(now.Keys()), 100)
	require.Zero(t, s.opened.Load())

	require.Len(t, slices.Collect(now.InNamespace("ns-3")), 10)
	require.Equal(t, int64(10), s.opened.Load(), "the others are of other namespaces")
	err = s.Add(shelfPod("pod-7", 201, "moved"))
	require.NoError(t, err)
	require.Equal(t, int64(11), s.opened.Load(), "the old value has to go")
}

func TestFormedRefusesNil(t *testing.T) {
	require.PanicsWithValue(t, "store: NewFormed: the form is nil", func() { store.NewFormed[*corev1.Pod](nil) })
	require.Panics(t, func() { newShelf(true, nil) })
}
