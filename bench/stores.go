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

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/undelta"
)

var (
	byNode      = store.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
	byNamespace = store.NewIndex("namespace", func(p *corev1.Pod) []string { return []string{p.Namespace} })
	ourIndexes  = []store.AnyIndex[*corev1.Pod]{byNode, byNamespace}
)

// theirIndexes are the first so many of client-go's two.
func theirIndexes(n int) cache.Indexers {
	declared := cache.Indexers{}
	if n > 0 {
		declared["node"] = func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }
	}
	if n > 1 {
		declared["namespace"] = cache.MetaNamespaceIndexFunc
	}
	return declared
}

// measureStores compares the stores, in this process: no object is decoded.
func measureStores(_ context.Context, s settings) {
	sizes := []int{110, 1_000, 10_000, 100_000}
	if s.Quick {
		sizes = sizes[:2]
	}
	measureWorks(sizes)
	table := harness.Table{Lead: "| objects", Columns: []harness.Column{
		harness.Col("ours", "%.0f", "ours"), harness.Col("client-go", "%.0f", "theirs"), harness.Col("ours / client-go", "%.2f", "ours/theirs"),
	}}
	table.Begin("stores, heap beside the objects, B/object")
	for _, n := range sizes {
		heapOfStores(table, n)
	}
	n := sizes[len(sizes)-1]
	pods := barePods(n)
	a, b := ourStore(pods, 1), theirStore(pods, 1)
	fmt.Printf("\nA writer beside 8 readers that list %d objects, wanted 5,000 writes/s: ours %.0f/s, client-go %.0f/s.\n",
		n, a.besideReaders(pods), b.besideReaders(pods))
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

// stored is a library's store with pods.
type stored struct {
	store               any
	add, update, remove func(*corev1.Pod)
	get, byNode         func(value string)
	list, snapshot      func()
}

// newStored makes a store of pods, with the first so many of two indexes.
type newStored func(pods []*corev1.Pod, indexes int) stored

func ourStore(pods []*corev1.Pod, indexes int) stored {
	x := store.NewIndexer(ourIndexes[:indexes]...)
	_ = x.Replace(store.Items(pods...), store.At("1"))
	return stored{
		store: x,
		add:   func(p *corev1.Pod) { _ = x.Add(p) }, update: func(p *corev1.Pod) { _ = x.Update(p) }, remove: func(p *corev1.Pod) { _ = x.Delete(p) },
		get: func(key string) { x.Snapshot().Get(key) },
		byNode: func(node string) {
			for range byNode.Objects(x.Snapshot(), node) {
			}
		},
		list: func() {
			for range x.Snapshot().All() {
			}
		},
		snapshot: func() { x.Snapshot() },
	}
}

func theirStore(pods []*corev1.Pod, indexes int) stored {
	y := cache.NewIndexer(cache.MetaNamespaceKeyFunc, theirIndexes(indexes))
	_ = y.Replace(anyOf(pods), "1")
	return stored{
		store: y,
		add:   func(p *corev1.Pod) { _ = y.Add(p) }, update: func(p *corev1.Pod) { _ = y.Update(p) }, remove: func(p *corev1.Pod) { _ = y.Delete(p) },
		get: func(key string) { _, _, _ = y.GetByKey(key) }, byNode: func(node string) { _, _ = y.ByIndex("node", node) },
		list: func() { _ = y.List() }, snapshot: func() {},
	}
}

func anyOf(pods []*corev1.Pod) []any {
	all := make([]any, len(pods))
	for i, p := range pods {
		all[i] = p
	}
	return all
}

func ourUndelta(pods []*corev1.Pod, _ int) stored {
	st := undelta.New(func(store.Snapshot[*corev1.Pod]) {})
	_ = st.Replace(store.Items(pods...), store.At("1"))
	return stored{update: func(p *corev1.Pod) { _ = st.Update(p) }}
}

func theirUndelta(pods []*corev1.Pod, _ int) stored {
	st := cache.NewUndeltaStore(func([]any) {}, cache.MetaNamespaceKeyFunc)
	_ = st.Replace(anyOf(pods), "1")
	return stored{update: func(p *corev1.Pod) { _ = st.Update(p) }}
}

// heapOfStores prints the heap of the stores beside n pods: alone, and for each index, which is
// half of the growth by two.
func heapOfStores(table harness.Table, n int) {
	pods := barePods(n)
	measured := func(fill newStored, indexes int) float64 {
		// Many small ones, so that the rest of the process does not count.
		stores := make([]any, 1+20_000/n)
		before := harness.Live()
		for i := range stores {
			stores[i] = fill(pods, indexes).store
		}
		after := harness.Live()
		runtime.KeepAlive(stores)
		return (after - before) / float64(n*len(stores))
	}
	none := harness.Figures{"ours": measured(ourStore, 0), "theirs": measured(theirStore, 0)}
	two := harness.Figures{"ours": measured(ourStore, 2), "theirs": measured(theirStore, 2)}
	runtime.KeepAlive(pods)
	each := two.Since(none)
	each["ours"], each["theirs"] = each["ours"]/2, each["theirs"]/2
	table.Row(none, "Indexer, no index", n)
	table.Row(each, "each index", n)
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
func (s stored) besideReaders(pods []*corev1.Pod) float64 {
	_, writes, took := beside(8, 3*time.Second, func(int) { s.list() }, updates(pods, s.update))
	return writes / took
}

// beside makes 5,000 writes a second for a while, or as many as are taken, beside goroutines that
// read, each its own numbers. It returns how many reads and writes there were in how many seconds.
func beside(readers int, period time.Duration, read, write func(i int)) (reads, writes, took float64) {
	const rate, atOnce = 5000, 50
	var done atomic.Int64
	var over atomic.Bool
	var running sync.WaitGroup
	for k := range readers {
		running.Go(func() {
			for n := k; !over.Load(); n += 7919 {
				read(n)
				done.Add(1)
			}
		})
	}
	began, number := time.Now(), 0
	for elapsed := time.Duration(0); elapsed < period; elapsed = time.Since(began) {
		due := int(rate*elapsed.Seconds()) - number
		if due < 1 {
			time.Sleep(100 * time.Microsecond)
		}
		for range min(due, atOnce) {
			write(number)
			number++
		}
	}
	took = time.Since(began).Seconds()
	over.Store(true)
	running.Wait()
	return float64(done.Load()), float64(number), took
}
