package main

import (
	"cmp"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
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
func measureStores(s settings) error {
	testing.Init()
	if err := flag.Set("test.benchtime", "200ms"); err != nil {
		return err
	}
	sizes := []int{110, 1_000, 10_000, 100_000}
	if s.pods <= 1000 { // -quick
		sizes = sizes[:2]
	}
	fmt.Print("\n### stores\n\n| | objects | ours | client-go | ours / client-go | bytes in allocations, ours | client-go |\n|---|---|---|---|---|---|---|\n")
	for _, n := range sizes {
		pods := barePods(n)
		compare("UndeltaStore update", n, updates(pods, undeltaOf(pods)), updates(pods, theirUndeltaOf(pods)))
		for indexes, name := range []string{"no index", "one index", "two indexes"} {
			x, y := bothIndexers(pods, indexes)
			compare("Indexer update, "+name, n,
				updates(pods, func(p *corev1.Pod) { _ = x.Update(p) }), updates(pods, func(p *corev1.Pod) { _ = y.Update(p) }))
		}
		x, y := bothIndexers(pods, 1)
		compare("Indexer delete and add, one index", n,
			func(i int) { p := pods[i*7919%n]; _ = x.Delete(p); _ = x.Add(p) },
			func(i int) { p := pods[i*7919%n]; _ = y.Delete(p); _ = y.Add(p) })
		keys := make([]string, n)
		for i := range keys {
			keys[i] = store.KeyOf(pods[i*7919%n])
		}
		compare("Indexer Get", n,
			func(i int) { x.Snapshot().Get(keys[i%n]) },
			func(i int) { _, _, _ = y.GetByKey(keys[i%n]) })
		compare("Indexer ByIndex, 110 found", n,
			func(i int) {
				for range byNode.Objects(x.Snapshot(), pods[i*7919%n].Spec.NodeName) {
				}
			},
			func(i int) { _, _ = y.ByIndex("node", pods[i*7919%n].Spec.NodeName) })
		compare("Indexer List", n,
			func(int) {
				for range x.Snapshot().All() {
				}
			},
			func(int) { _ = y.List() })
	}
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

// heapOfStores prints what the stores hold beside n pods: alone, and what one index adds, which is
// half of what two add.
func heapOfStores(n int) {
	pods := barePods(n)
	measured := func(fill func() any) float64 {
		// Many small ones, so that what else the process holds does not count.
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

// updates writes newer versions of pods, made beforehand: two of each, so that every write changes
// something.
func updates(pods []*corev1.Pod, write func(*corev1.Pod)) func(i int) {
	newer := [2][]*corev1.Pod{}
	for v := range newer {
		for i, p := range pods {
			n := *p
			n.ResourceVersion = strconv.Itoa(1_000_000*(v+1) + i)
			newer[v] = append(newer[v], &n)
		}
	}
	return func(i int) { write(newer[i/len(pods)%2][i%len(pods)]) }
}

// compare prints one row: medians of runs that alternate.
func compare(name string, n int, ours, theirs func(i int)) {
	measured := func(do func(i int)) testing.BenchmarkResult {
		return testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				do(i)
			}
		})
	}
	const runs = 3
	perOp := func(r testing.BenchmarkResult) float64 { return float64(r.T.Nanoseconds()) / float64(r.N) }
	var all [2][]testing.BenchmarkResult
	for range runs {
		for who, do := range []func(int){ours, theirs} {
			all[who] = append(all[who], measured(do))
		}
	}
	for _, results := range all {
		slices.SortFunc(results, func(a, b testing.BenchmarkResult) int { return cmp.Compare(perOp(a), perOp(b)) })
	}
	a, b := all[0][runs/2], all[1][runs/2]
	fmt.Printf("| %s | %d | %.2f us | %.2f us | %.4f | %d in %d | %d in %d |\n", name, n, perOp(a)/1e3, perOp(b)/1e3, perOp(a)/perOp(b),
		a.AllocedBytesPerOp(), a.AllocsPerOp(), b.AllocedBytesPerOp(), b.AllocsPerOp())
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
