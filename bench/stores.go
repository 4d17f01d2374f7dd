package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/undelta"
)

var (
	byNode      = store.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
	byNamespace = store.NewIndex("namespace", func(p *corev1.Pod) []string { return []string{p.Namespace} })
)

// measureStores compares the stores, in this process: no object is decoded.
func measureStores(_ context.Context, s settings) error {
	sizes := []int{110, 1_000, 10_000, 100_000}
	if s.Quick {
		sizes = sizes[:2]
	}
	fmt.Print("\n### stores\n\nCPU time of the process for one operation, without the collector's, which follows the bytes; medians of 3 runs by turns.\n\n" +
		"| work | objects | indexes | ours, ns | client-go, ns | ours / client-go | bytes in allocations, ours | client-go |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	var rows []storeRow
	for _, w := range storeWorks {
		for _, n := range sizes {
			for _, indexes := range w.indexes {
				r := w.measure(n, indexes)
				r.print()
				rows = append(rows, r)
			}
		}
	}
	printRange(rows)
	fmt.Print("\n| heap beside the objects, B/object | objects | ours | client-go | ours / client-go |\n|---|---|---|---|---|\n")
	for _, n := range sizes {
		heapOfStores(n)
	}
	n := sizes[len(sizes)-1]
	pods := barePods(n)
	x, y := bothIndexers(pods, 1)
	ours := besideReaders(pods, func(p *corev1.Pod) { _ = x.Update(p) }, func() {
		for range x.Snapshot().All() {
		}
	})
	theirs := besideReaders(pods, func(p *corev1.Pod) { _ = y.Update(p) }, func() { _ = y.List() })
	fmt.Printf("\nA writer beside 8 readers that list %d objects, wanted 5,000 writes/s: ours %.0f/s, client-go %.0f/s.\n", n, ours, theirs)
	return nil
}

func barePods(n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("team-", i/200), Name: fmt.Sprint("service-", i/50, "-", i), ResourceVersion: strconv.Itoa(i + 1)},
			Spec:       corev1.PodSpec{NodeName: fmt.Sprint("node-", i/110)},
		}
	}
	return pods
}

// bothIndexers are ours and client-go's with the first so many of two indexes.
func bothIndexers(pods []*corev1.Pod, indexes int) (*store.Indexer[*corev1.Pod], cache.Indexer) {
	return ourIndexer(pods, indexes), theirIndexer(pods, indexes)
}

func ourIndexer(pods []*corev1.Pod, indexes int) *store.Indexer[*corev1.Pod] {
	x := store.NewIndexer([]store.AnyIndex[*corev1.Pod]{byNode, byNamespace}[:indexes]...)
	_ = x.Replace(store.Items(pods...), store.At("1"))
	return x
}

func theirIndexer(pods []*corev1.Pod, indexes int) cache.Indexer {
	declared := cache.Indexers{}
	if indexes > 0 {
		declared["node"] = func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }
	}
	if indexes > 1 {
		declared["namespace"] = cache.MetaNamespaceIndexFunc
	}
	y := cache.NewIndexer(cache.MetaNamespaceKeyFunc, declared)
	all := make([]any, len(pods))
	for i, p := range pods {
		all[i] = p
	}
	_ = y.Replace(all, "1")
	return y
}

// heapOfStores prints the heap of the stores beside n pods: alone, and for each index, which is
// half of the growth by two.
func heapOfStores(n int) {
	pods := barePods(n)
	measured := func(fill func() any) float64 {
		// Many small ones, so that the rest of the process does not count.
		stores := make([]any, 1+20_000/n)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range stores {
			stores[i] = fill()
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(stores)
		return (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / float64(n*len(stores))
	}
	var ours, theirs [3]float64
	for indexes := range ours {
		ours[indexes] = measured(func() any { return ourIndexer(pods, indexes) })
		theirs[indexes] = measured(func() any { return theirIndexer(pods, indexes) })
	}
	runtime.KeepAlive(pods)
	row := func(name string, a, b float64) { fmt.Printf("| %s | %d | %.0f | %.0f | %.2f |\n", name, n, a, b, a/b) }
	row("Indexer, no index", ours[0], theirs[0])
	row("each index", (ours[2]-ours[0])/2, (theirs[2]-theirs[0])/2)
}

func undeltaOf(pods []*corev1.Pod) func(*corev1.Pod) {
	st := undelta.New(func(store.Snapshot[*corev1.Pod]) {})
	_ = st.Replace(store.Items(pods...), store.At("1"))
	return func(p *corev1.Pod) { _ = st.Update(p) }
}

func theirUndeltaOf(pods []*corev1.Pod) func(*corev1.Pod) {
	st := cache.NewUndeltaStore(func([]any) {}, cache.MetaNamespaceKeyFunc)
	all := make([]any, len(pods))
	for i, p := range pods {
		all[i] = p
	}
	_ = st.Replace(all, "1")
	return func(p *corev1.Pod) { _ = st.Update(p) }
}

// updates writes newer versions of pods in no order, made beforehand: two of each, so that every
// write changes something.
func updates(pods []*corev1.Pod, write func(*corev1.Pod)) func(i int) {
	newer := [2][]*corev1.Pod{}
	for v := range newer {
		for i, j := range rand.New(rand.NewPCG(1, 1)).Perm(len(pods)) {
			n := *pods[j]
			n.ResourceVersion = strconv.Itoa(1_000_000*(v+1) + i)
			newer[v] = append(newer[v], &n)
		}
	}
	return func(i int) { write(newer[i/len(pods)%2][i%len(pods)]) }
}

// besideReaders is how many writes a second a writer makes that wants 5,000, beside 8 goroutines
// that read everything.
func besideReaders(pods []*corev1.Pod, write func(*corev1.Pod), list func()) float64 {
	const readers, rate, period = 8, 5000, 3 * time.Second
	var stop atomic.Bool
	var running sync.WaitGroup
	for range readers {
		running.Go(func() {
			for !stop.Load() {
				list()
			}
		})
	}
	update := updates(pods, write)
	began, writes := time.Now(), 0
	for elapsed := time.Duration(0); elapsed < period; elapsed = time.Since(began) {
		if float64(writes) > rate*elapsed.Seconds() {
			time.Sleep(100 * time.Microsecond)
			continue
		}
		update(writes)
		writes++
	}
	took := time.Since(began)
	stop.Store(true)
	running.Wait()
	return float64(writes) / took.Seconds()
}
