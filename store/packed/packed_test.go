package packed_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/collector"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
	"github.com/tributary-go/tributary/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Rig {
		pods := packed.New[corev1.Pod]()
		return storetest.Rig{Store: pods, Objects: func() []*corev1.Pod { return pods.Snapshot().Sorted() },
			ResourceVersion: func() string { return pods.Snapshot().ResourceVersion() }}
	})
}

// TestAbilities: a reflector finds them by type assertion.
func TestAbilities(t *testing.T) {
	var st any = packed.New[corev1.Pod]()
	require.Implements(t, (*store.Snapshotter[*corev1.Pod])(nil), st)
	require.Implements(t, (*store.Bookmarker)(nil), st)
}

var (
	byNode  = store.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
	byImage = store.NewIndex("image", func(p *corev1.Pod) (images []string) {
		for _, c := range p.Spec.Containers {
			images = append(images, c.Image)
		}
		return images
	})
)

func indexes() []store.AnyIndex[*corev1.Pod] {
	return []store.AnyIndex[*corev1.Pod]{byNode, byImage, store.ByNamespace[*corev1.Pod](), store.ByLabel[*corev1.Pod]("app")}
}

// somePod is a pod of one of a few owners, as decoding leaves it.
func somePod(i, version int) *corev1.Pod {
	owner := i / 7
	random := rand.New(rand.NewSource(int64(i*1000 + version)))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: fmt.Sprint("team-", owner%5), Name: fmt.Sprintf("service-%d-%05d", owner, i),
		UID: types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", i*7919, i)), ResourceVersion: strconv.Itoa(version),
		Labels:            map[string]string{"app": fmt.Sprint("service-", owner), "pod-template-hash": fmt.Sprintf("%x", owner*104729)},
		CreationTimestamp: metav1.Unix(1_790_000_000+int64(i), 0),
	}}
	pod.Spec.NodeName = fmt.Sprint("node-", random.Intn(9))
	for c := range 3 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprint("container-", c), Image: fmt.Sprintf("registry.example.com/team/service-%d:v%d", owner+c, owner%3),
			Env: []corev1.EnvVar{{Name: "POD_NAMESPACE", Value: pod.Namespace}, {Name: "ENDPOINT", Value: fmt.Sprintf("http://service-%d.%s.svc:8080/api", owner, pod.Namespace)}},
		})
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP = fmt.Sprintf("10.%d.%d.%d", i%250, random.Intn(250), random.Intn(250))
	return pod
}

// TestPackedIsAnIndexer makes the same random changes to both, and reads both in all ways: the
// content now, and that of snapshots from before.
func TestPackedIsAnIndexer(t *testing.T) {
	for _, size := range []int{0, 1, 3, 60, 400} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			seed := time.Now().UnixNano()
			t.Log("seed", seed)
			random := rand.New(rand.NewSource(seed))
			at, plain := packed.New[corev1.Pod](indexes()...), store.NewIndexer(indexes()...)
			var items []*corev1.Pod
			for i := range size {
				items = append(items, somePod(i, i+1))
			}
			require.NoError(t, at.Replace(store.Items(items...), store.At(strconv.Itoa(size+1))))
			require.NoError(t, plain.Replace(store.Items(items...), store.At(strconv.Itoa(size+1))))
			requireEqual(t, plain.Snapshot(), at.Snapshot())
			first, firstPlain := at.Snapshot(), plain.Snapshot()
			version := size + 1
			for round := range 12 {
				was, wasPlain := at.Snapshot(), plain.Snapshot()
				for range 1 + size/3 {
					version++
					pod := somePod(random.Intn(size+size/4+2), version)
					switch random.Intn(10) {
					case 0:
						require.NoError(t, at.Delete(pod))
						require.NoError(t, plain.Delete(pod))
					case 1:
						pod.UID += "-another"
						fallthrough
					default:
						require.NoError(t, at.Update(pod))
						require.NoError(t, plain.Update(pod))
					}
				}
				if round%4 == 3 {
					kept := slices.DeleteFunc(plain.Snapshot().Sorted(), func(*corev1.Pod) bool { return random.Intn(10) == 0 })
					for i, pod := range kept {
						kept[i] = pod.DeepCopy()
						if random.Intn(20) == 0 {
							kept[i].Labels["changed"] = "under an equal version"
						}
					}
					require.NoError(t, at.Replace(store.Items(kept...), store.At(strconv.Itoa(version))))
					require.NoError(t, plain.Replace(store.Items(kept...), store.At(strconv.Itoa(version))))
				}
				requireEqual(t, plain.Snapshot(), at.Snapshot())
				requireEqual(t, wasPlain, was)
				require.Equal(t, changes(store.Diff(wasPlain, plain.Snapshot())), changes(store.Diff(was, at.Snapshot())))
			}
			requireEqual(t, firstPlain, first)
		})
	}
}

func changes(diff func(func(store.Change[*corev1.Pod]) bool)) (all []string) {
	for c := range diff {
		all = append(all, fmt.Sprint(c.Key, " ", c.Old.String(), " ", c.New.String()))
	}
	slices.Sort(all)
	return all
}

func requireEqual(t *testing.T, want, got store.Snapshot[*corev1.Pod]) {
	t.Helper()
	require.Equal(t, want.ResourceVersion(), got.ResourceVersion())
	require.Equal(t, want.Len(), got.Len())
	require.Equal(t, want.Sorted(), got.Sorted())
	require.Equal(t, maps.Collect(byNode.Values(want)), maps.Collect(byNode.Values(got)))
	require.Equal(t, maps.Collect(byImage.Values(want)), maps.Collect(byImage.Values(got)))
	for node := range byNode.Values(want) {
		require.ElementsMatch(t, slices.Collect(byNode.Objects(want, node)), slices.Collect(byNode.Objects(got, node)))
	}
	selector := labels.SelectorFromSet(labels.Set{"app": "service-1"})
	require.ElementsMatch(t, slices.Collect(want.Select("", selector)), slices.Collect(got.Select("", selector)))
	require.ElementsMatch(t, slices.Collect(want.Select("team-1", selector)), slices.Collect(got.Select("team-1", selector)))
}

// TestGrownByEvents: a store without a list learns when it has become large.
func TestGrownByEvents(t *testing.T) {
	pods := packed.New[corev1.Pod]()
	for i := range 1500 {
		require.NoError(t, pods.Add(somePod(i, i+1)))
		if i == 10 {
			require.False(t, pods.Learned())
		}
	}
	require.True(t, pods.Learned())
	for i := range 1500 {
		got, ok := pods.Get(store.KeyOf(somePod(i, 1)))
		require.True(t, ok)
		require.Equal(t, somePod(i, i+1), got)
	}
}

// TestAListLearnsAnew: once objects have changed so much that siblings have little in common.
func TestAListLearnsAnew(t *testing.T) {
	pods := packed.New[corev1.Pod]()
	var items []*corev1.Pod
	for i := range 1000 {
		items = append(items, somePod(i, 1))
	}
	require.NoError(t, pods.Replace(store.Items(items...), store.At("1")))
	first := pods.Generations()
	require.Len(t, first, 1)
	require.NoError(t, pods.Replace(store.Items(items...), store.At("2")))
	require.Equal(t, first, pods.Generations(), "nothing has changed")
	random := rand.New(rand.NewSource(1))
	for round := range 3 {
		for _, pod := range items {
			pod.ResourceVersion = fmt.Sprint(10 + round)
			pod.Annotations = map[string]string{}
			for i := range 30 {
				pod.Annotations[fmt.Sprint(i)] = strconv.FormatInt(random.Int63(), 36)
			}
			require.NoError(t, pods.Update(pod))
		}
	}
	for _, pod := range items {
		pod.ResourceVersion = "20"
	}
	require.NoError(t, pods.Replace(store.Items(items...), store.At("20")))
	require.Len(t, pods.Generations(), 1, "the old one went with its last object")
	require.NotEqual(t, first, pods.Generations())
	require.Equal(t, items[7], pods.Snapshot().Sorted()[slices.IndexFunc(pods.Snapshot().Sorted(), func(p *corev1.Pod) bool { return p.Name == items[7].Name })])
	require.NoError(t, pods.Replace(store.Items[*corev1.Pod](), store.At("21")))
	require.False(t, pods.Remembers(), "of an empty collection")
}

// TestReadIsTheCallers: two reads share nothing, and nothing of the argument is left.
func TestReadIsTheCallers(t *testing.T) {
	pods := packed.New[corev1.Pod]()
	require.NoError(t, pods.Add(somePod(1, 1)))
	key := store.KeyOf(somePod(1, 1))
	got := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod"}, Spec: corev1.PodSpec{SchedulerName: "left"}}
	require.True(t, pods.Read(key, got))
	require.Equal(t, somePod(1, 1), got)
	got.Labels["app"] = "written"
	again, ok := pods.Get(key)
	require.True(t, ok)
	require.Equal(t, somePod(1, 1), again)
	require.False(t, pods.Read("none", got))
	require.Equal(t, "written", got.Labels["app"], "as it was")
	_, ok = pods.Get("none")
	require.False(t, ok)
}

// TestHotIsBounded: a hot object is read without decoding, and its next state is hot in its place.
func TestHotIsBounded(t *testing.T) {
	t.Cleanup(func() { packed.SetHot(packed.DefaultHot) })
	pods := packed.New[corev1.Pod]()
	for i := range 100 {
		require.NoError(t, pods.Add(somePod(i, 1)))
	}
	keys := slices.Sorted(maps.Keys(maps.Collect(pods.Snapshot().All())))
	get := func(key string) *corev1.Pod {
		pod, ok := pods.Get(key)
		require.True(t, ok)
		return pod
	}
	require.Same(t, get(keys[0]), get(keys[0]))
	hot, _ := pods.Snapshot().Get(keys[0])
	require.Same(t, get(keys[0]), hot, "of a snapshot too")
	cold, _ := pods.Snapshot().Get(keys[1])
	require.NotSame(t, cold, get(keys[1]), "a snapshot warms nothing")

	next := get(keys[0]).DeepCopy()
	next.ResourceVersion = "2"
	require.NoError(t, pods.Update(next))
	require.Same(t, next, get(keys[0]))

	packed.SetHot(20 << 10)
	same := 0
	for range 3 {
		for _, key := range keys {
			if pod := get(key); pod == get(key) {
				same++
			}
		}
	}
	require.Equal(t, 300, same, "just read")
	first := get(keys[0])
	for _, key := range keys[1:] {
		get(key)
	}
	require.NotSame(t, first, get(keys[0]), "others took its place")
	packed.SetHot(0)
	require.NotSame(t, get(keys[0]), get(keys[0]))
}

// TestReadersBesideAWriter reads whole objects of snapshots and of now while everything changes.
func TestReadersBesideAWriter(t *testing.T) {
	t.Cleanup(func() { packed.SetHot(packed.DefaultHot) })
	packed.SetHot(64 << 10)
	pods := packed.New[corev1.Pod](indexes()...)
	const size = 300
	var items []*corev1.Pod
	for i := range size {
		items = append(items, somePod(i, 1))
	}
	require.NoError(t, pods.Replace(store.Items(items...), store.At("1")))
	ended := make(chan struct{})
	var readers sync.WaitGroup
	for r := range 3 {
		readers.Go(func() {
			random := rand.New(rand.NewSource(int64(r)))
			for done := false; !done; {
				select {
				case <-ended:
					done = true
				default:
				}
				i := random.Intn(size)
				got, ok := pods.Get(store.KeyOf(items[i]))
				if version, _ := strconv.Atoi(got.ResourceVersion); !ok || !reflect.DeepEqual(got, somePod(i, version)) {
					t.Error("another pod", got)
					return
				}
				for pod := range byNode.Objects(pods.Snapshot(), "node-3") {
					if pod.Spec.NodeName != "node-3" {
						t.Error("on another node")
					}
				}
				var own corev1.Pod
				pods.Read(store.KeyOf(items[i]), &own)
				own.Labels["written"] = "by its owner"
			}
		})
	}
	for version := 2; version < 2000; version++ {
		require.NoError(t, pods.Update(somePod(version*31%size, version)))
		if version%500 == 0 {
			require.NoError(t, pods.Replace(store.Items(pods.Snapshot().Sorted()...), store.At(strconv.Itoa(version))))
		}
	}
	close(ended)
	readers.Wait()
}

// TestErrorsNameTheObject: what cannot be encoded is refused, and costs nothing else.
func TestErrorsNameTheObject(t *testing.T) {
	trees := packed.New[unstructured.Unstructured]()
	tree := func(name string, value any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "uid": name}, "value": value}}
	}
	require.NoError(t, trees.Add(tree("good", "v")))
	require.ErrorContains(t, trees.Add(tree("bad", func() {})), "packed: bad: encode: ")
	require.ErrorContains(t, trees.Replace(store.Items(tree("new", 1), tree("bad", func() {})), store.At("2")), "packed: bad: ")
	require.Equal(t, 1, trees.Snapshot().Len())
	broken := errors.New("broken")
	require.ErrorIs(t, trees.Replace(func(yield func(*unstructured.Unstructured, error) bool) { yield(nil, broken) }, nil), broken)
	require.ErrorContains(t, trees.Delete(nil), "nil")
}

// TestTreesKeepTheirNumbers: a float without a fraction is no integer.
func TestTreesKeepTheirNumbers(t *testing.T) {
	trees := packed.New[unstructured.Unstructured]()
	var tree unstructured.Unstructured
	require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts([]byte(`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"w"},
		"values":[1,1.0,-0.0,1e3,1e30,0.5,9007199254740993,{"deep":[2.0,"<&>",null,true]}],"empty":{},"none":[]}`), &tree.Object))
	require.NoError(t, trees.Add(&tree))
	got, ok := trees.Get("w")
	require.True(t, ok)
	require.Equal(t, tree.Object, got.Object)
}

// TestTypesKeepTheirKind: the metadata form has apiVersion and kind, and typed objects may have
// them.
func TestTypesKeepTheirKind(t *testing.T) {
	heads := packed.New[metav1.PartialObjectMetadata]()
	head := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: somePod(1, 1).ObjectMeta}
	require.NoError(t, heads.Add(head))
	got, ok := heads.Get(store.KeyOf(head))
	require.True(t, ok)
	require.Equal(t, head, got)
	nodes := packed.New[corev1.Node]()
	node := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	require.NoError(t, nodes.Add(node))
	same, _ := nodes.Get("n")
	require.Equal(t, node, same)
}

// TestEveryTypeOfTheScheme: objects of each type, filled at random and decoded once, come back
// deeply equal, as their own store's kind and as trees.
func TestEveryTypeOfTheScheme(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Log("seed", seed)
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs)
	var kinds []schema.GroupVersionKind
	for gvk := range scheme.Scheme.AllKnownTypes() {
		kinds = append(kinds, gvk)
	}
	sort.Slice(kinds, func(i, j int) bool { return kinds[i].String() < kinds[j].String() })
	checked := 0
	trees := packed.New[unstructured.Unstructured]()
	for _, gvk := range kinds {
		example, err := scheme.Scheme.New(gvk)
		require.NoError(t, err)
		if _, ok := example.(store.Object); !ok {
			continue
		}
		at := packed.NewAny(func() store.Object {
			obj, _ := scheme.Scheme.New(gvk)
			return obj.(store.Object)
		})
		for i := range 20 {
			filled, _ := scheme.Scheme.New(gvk)
			fill.Fill(filled)
			obj := decoded(t, filled.(store.Object))
			obj.SetName(fmt.Sprint("object-", i))
			obj.SetNamespace("ns")
			require.NoError(t, at.Add(obj))
			got, ok := at.Snapshot().Get(store.KeyOf(obj))
			require.True(t, ok)
			require.Equal(t, obj, got, gvk)

			tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
			require.NoError(t, err)
			require.NoError(t, trees.Update(&unstructured.Unstructured{Object: tree}))
			gotTree, _ := trees.Snapshot().Get(store.KeyOf(obj))
			require.Equal(t, tree, gotTree.Object, gvk)
			checked++
		}
	}
	require.Greater(t, checked, 1000)
}

// decoded is an object as decoding leaves it.
func decoded(t *testing.T, obj store.Object) store.Object {
	t.Helper()
	type message interface {
		Marshal() ([]byte, error)
		Unmarshal([]byte) error
	}
	fresh, err := scheme.Scheme.New(func() schema.GroupVersionKind {
		gvks, _, err := scheme.Scheme.ObjectKinds(obj)
		require.NoError(t, err)
		return gvks[0]
	}())
	require.NoError(t, err)
	data, err := obj.(message).Marshal()
	require.NoError(t, err)
	require.NoError(t, fresh.(message).Unmarshal(data))
	return fresh.(store.Object)
}

// TestNoReaderWaitsForTheCollector: each Get makes room among the hot objects.
func TestNoReaderWaitsForTheCollector(t *testing.T) {
	if !collector.Alone(t) {
		return
	}
	packed.SetHot(20 << 10)
	pods := packed.New[corev1.Pod]()
	for i := range 100 {
		require.NoError(t, pods.Add(somePod(i, 1)))
	}
	i := 0
	worst, held := collector.Stall(t, func() {
		_, ok := pods.Get(store.KeyOf(somePod(i%100, 1)))
		require.True(t, ok)
		i++
	})
	t.Logf("the collector was held for %v; the slowest read took %v", held, worst)
	require.Less(t, worst, held/3)
}
