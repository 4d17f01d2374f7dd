package clientgo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// TestIndexerIsLikeClientGos compares our indexer with client-go's after random writes.
func TestIndexerIsLikeClientGos(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	theirs := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	ours := clientgo.Indexer(&store.Indexer[*corev1.Pod]{})
	write := func(op string, write func(cache.Indexer) error) {
		require.NoError(t, write(theirs), op)
		require.NoError(t, write(ours), op)
	}
	somePod := func(version int) *corev1.Pod {
		pod := onNode(fmt.Sprint("ns-", random.IntN(3)), fmt.Sprint("pod-", random.IntN(20)), fmt.Sprint("node-", random.IntN(4)))
		pod.ResourceVersion = fmt.Sprint(version)
		return pod
	}
	for version := 1; version <= 2000; version++ {
		pod := somePod(version)
		switch random.IntN(12) {
		case 0, 1, 2:
			write("delete", func(x cache.Indexer) error { return x.Delete(pod) })
		case 3:
			if random.IntN(10) > 0 {
				break
			}
			var all []any
			for range random.IntN(20) {
				all = append(all, somePod(version))
			}
			write("replace", func(x cache.Indexer) error { return x.Replace(slices.Clone(all), fmt.Sprint(version)) })
		case 4:
			if version > 500 && theirs.GetIndexers()["node"] == nil {
				write("index", func(x cache.Indexer) error { return x.AddIndexers(cache.Indexers{"node": byNode}) })
			}
		case 5, 6:
			requireEqualIndexers(t, theirs, ours, pod)
		case 7:
			write("update", func(x cache.Indexer) error { return x.Update(pod) })
		default:
			write("add", func(x cache.Indexer) error { return x.Add(pod) })
		}
	}
	requireEqualIndexers(t, theirs, ours, somePod(0))
	require.Contains(t, ours.GetIndexers(), "node")
}

func requireEqualIndexers(t *testing.T, theirs, ours cache.Indexer, pod *corev1.Pod) {
	t.Helper()
	require.ElementsMatch(t, theirs.List(), ours.List())
	require.ElementsMatch(t, theirs.ListKeys(), ours.ListKeys())
	for _, get := range []func(cache.Indexer) (any, bool, error){
		func(x cache.Indexer) (any, bool, error) { return x.Get(pod) },
		func(x cache.Indexer) (any, bool, error) { return x.GetByKey(store.KeyOf(pod)) },
	} {
		wantObj, wantOK, _ := get(theirs)
		obj, ok, err := get(ours)
		require.NoError(t, err)
		require.Equal(t, wantOK, ok)
		require.True(t, obj == wantObj, "the very same object, or none: %v and %v", obj, wantObj)
	}
	for name := range theirs.GetIndexers() {
		require.ElementsMatch(t, theirs.ListIndexFuncValues(name), ours.ListIndexFuncValues(name))
		for _, value := range theirs.ListIndexFuncValues(name) {
			wantObjs, err := theirs.ByIndex(name, value)
			require.NoError(t, err)
			objs, err := ours.ByIndex(name, value)
			require.NoError(t, err)
			require.ElementsMatch(t, wantObjs, objs)
			wantKeys, err := theirs.IndexKeys(name, value)
			require.NoError(t, err)
			keys, err := ours.IndexKeys(name, value)
			require.NoError(t, err)
			require.ElementsMatch(t, wantKeys, keys)
		}
		want, err := theirs.Index(name, pod)
		require.NoError(t, err)
		got, err := ours.Index(name, pod)
		require.NoError(t, err)
		require.ElementsMatch(t, want, got)
	}
}

// TestGeneratedLister reads a store through k8s.io/client-go/listers.
func TestGeneratedLister(t *testing.T) {
	pods := &store.Indexer[*corev1.Pod]{}
	lister := listers.NewPodLister(clientgo.Indexer(pods))
	a, b, other := onNode("ns", "a", "n1"), onNode("ns", "b", "n1"), onNode("other", "a", "n2")
	for _, pod := range []*corev1.Pod{a, b, other} {
		require.NoError(t, pods.Add(pod))
	}
	all, err := lister.List(labels.Everything())
	require.NoError(t, err)
	require.ElementsMatch(t, []*corev1.Pod{a, b, other}, all)
	all, err = lister.Pods("ns").List(labels.SelectorFromSet(labels.Set{"app": "b"}))
	require.NoError(t, err)
	require.Equal(t, []*corev1.Pod{b}, all)
	got, err := lister.Pods("other").Get("a")
	require.NoError(t, err)
	require.True(t, got == other)
	require.NoError(t, pods.Delete(other))
	_, err = lister.Pods("other").Get("a")
	require.ErrorContains(t, err, `pod "a" not found`)
	all, err = lister.Pods("other").List(labels.Everything())
	require.NoError(t, err)
	require.Empty(t, all)
}

// TestIndexWithSeveralValues: an object under several of the queried values is returned once.
func TestIndexWithSeveralValues(t *testing.T) {
	pods := &store.Indexer[*corev1.Pod]{}
	x := clientgo.Indexer(pods)
	require.NoError(t, x.AddIndexers(cache.Indexers{"both": func(obj any) ([]string, error) {
		pod := obj.(*corev1.Pod)
		return []string{pod.Name, pod.Spec.NodeName, pod.Name}, nil
	}}))
	require.NoError(t, pods.Add(onNode("ns", "a", "n1")))
	require.NoError(t, pods.Add(onNode("ns", "b", "n1")))
	found, err := x.Index("both", onNode("ns", "a", "n1"))
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.ElementsMatch(t, []string{"a", "b", "n1"}, x.ListIndexFuncValues("both"))
}

// TestIndexNeverGoesBack: a reader with an older snapshot must not turn the index back.
func TestIndexNeverGoesBack(t *testing.T) {
	pods := &store.Indexer[*corev1.Pod]{}
	x := clientgo.Indexer(pods)
	const writes = 300
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for seen := 0; ; {
				found, err := x.ByIndex(cache.NamespaceIndex, "ns")
				require.NoError(t, err)
				require.GreaterOrEqual(t, len(found), seen, "additions only")
				seen = len(found)
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range writes {
		require.NoError(t, pods.Add(onNode("ns", fmt.Sprint(i), "n1")))
	}
	close(done)
	readers.Wait()
	found, err := x.ByIndex(cache.NamespaceIndex, "ns")
	require.NoError(t, err)
	require.Len(t, found, writes)
}

func TestIndexerErrors(t *testing.T) {
	pods := &store.Indexer[*corev1.Pod]{}
	require.NoError(t, pods.Add(onNode("ns", "a", "n1")))
	x := clientgo.Indexer(pods)
	readOnly := clientgo.Indexer(informer.New(listwatch.FromClientGo[*corev1.Pod](&cache.ListWatch{})))
	require.NoError(t, x.AddIndexers(cache.Indexers{"node": byNode, "broken": func(any) ([]string, error) {
		return nil, errors.New("no idea")
	}}))
	_, noIndex := x.ByIndex("colour", "red")
	_, noKeys := x.IndexKeys("colour", "red")
	_, broken := x.ByIndex("broken", "red")
	_, _, noKey := x.Get("a string")
	_, notAPod := x.Index("node", &corev1.Node{})
	for want, err := range map[string]error{
		`there is no index "colour": add it`:                        noIndex,
		`there is no index "colour"`:                                noKeys,
		`index "broken": the index function fails at ns/a: no idea`: broken,
		"a string has no key":                                       noKey,
		`index "node": a *v1.Node is no pod`:                        notAPod,
		"add: got a *v1.Node instead of a *v1.Pod":                  x.Add(&corev1.Node{}),
		"update: got a <nil> instead of a *v1.Pod":                  x.Update(nil),
		"replace: got a int instead of a *v1.Pod":                   x.Replace([]any{onNode("ns", "b", ""), 7}, "3"),
		`add index "node": indexer conflict`:                        x.AddIndexers(cache.Indexers{"fine": byNode, "node": byNode}),
		`add index "empty": its function is nil`:                    x.AddIndexers(cache.Indexers{"empty": nil}),
		"add: only its informer writes the store":                   readOnly.Add(onNode("ns", "a", "")),
		"update: only its informer writes the store":                readOnly.Update(onNode("ns", "a", "")),
		"delete: only its informer writes the store":                readOnly.Delete(onNode("ns", "a", "")),
		"clientgo: replace: only its informer writes the store":     readOnly.Replace(nil, "1"),
	} {
		require.ErrorContains(t, err, want)
	}
	require.PanicsWithError(t, `unable to calculate an index entry for key "ns/a" on index "broken": no idea`, func() { _ = x.Add(onNode("ns", "a", "n2")) }, "as in client-go")
	require.NotContains(t, x.GetIndexers(), "fine", "all or none")
	require.Nil(t, x.ListIndexFuncValues("colour"))
	require.NotContains(t, x.GetIndexers(), cache.NamespaceIndex, "which nobody has added")
	require.NoError(t, x.AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}), "as factories do")
	require.Contains(t, x.GetIndexers(), cache.NamespaceIndex)
	require.Len(t, x.List(), 1, "a replacement that fails leaves the old content")
	require.NoError(t, x.Delete(cache.DeletedFinalStateUnknown{Key: "ns/a", Obj: onNode("ns", "a", "")}))
	require.Empty(t, x.List())
	x.(versioned).Bookmark("7")
	require.Equal(t, "7", x.(versioned).LastStoreSyncResourceVersion())
	readOnly.(versioned).Bookmark("7")
	require.Empty(t, readOnly.(versioned).LastStoreSyncResourceVersion())
	require.NoError(t, x.Resync())
}
