package store_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/store"
)

// The benchmarks run our Indexer and client-go's on the same pods, 110 pods a node, 200 a
// namespace.

var sizes = []int{110, 1_000, 10_000, 100_000}

func benchPods(n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = onNode(pod(fmt.Sprintf("deployment-%d-%d", i/50, i), i+1), fmt.Sprintf("node-%d", i/110))
		pods[i].Namespace = fmt.Sprintf("team-%d", i/200)
	}
	return pods
}

var byNamespace = store.NewIndex("namespace", func(p *corev1.Pod) []string { return []string{p.Namespace} })

// ours has the first so many of two indexes: by node and by namespace.
func ours(pods []*corev1.Pod, indexes int) *store.Indexer[*corev1.Pod] {
	x := store.NewIndexer([]store.AnyIndex[*corev1.Pod]{byNode, byNamespace}[:indexes]...)
	_ = x.Replace(store.Items(pods...), store.At("1"))
	return x
}

func theirs(pods []*corev1.Pod, indexes int) cache.Indexer {
	x := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	all := make([]any, len(pods))
	for i, p := range pods {
		all[i] = p
	}
	if indexes > 0 {
		_ = x.AddIndexers(cache.Indexers{"node": func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }})
	}
	if indexes > 1 {
		_ = x.AddIndexers(cache.Indexers{"namespace": cache.MetaNamespaceIndexFunc})
	}
	_ = x.Replace(all, "1")
	return x
}

func BenchmarkGet(b *testing.B) {
	for _, n := range sizes {
		pods := benchPods(n)
		keys := make([]string, n)
		for i, j := range rand.New(rand.NewPCG(1, 1)).Perm(n) {
			keys[i] = store.KeyOf(pods[j])
		}
		x, y := ours(pods, 1), theirs(pods, 1)
		b.Run(fmt.Sprintf("%d/tributary", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				x.Snapshot().Get(keys[i%n])
			}
		})
		b.Run(fmt.Sprintf("%d/client-go", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_, _, _ = y.GetByKey(keys[i%n])
			}
		})
	}
}

// newerPods are two newer versions of each pod, in no order.
func newerPods(pods []*corev1.Pod) (newer [2][]*corev1.Pod) {
	for version := range newer {
		for i, j := range rand.New(rand.NewPCG(1, 1)).Perm(len(pods)) {
			next := *pods[j]
			next.ResourceVersion = strconv.Itoa(1_000_000*(version+1) + i)
			newer[version] = append(newer[version], &next)
		}
	}
	return newer
}

// BenchmarkUpdate writes newer versions of pods, made beforehand: two of each, so that every write
// changes something.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range sizes {
		pods := benchPods(n)
		newer := newerPods(pods)
		for indexes := range 3 {
			x, y := ours(pods, indexes), theirs(pods, indexes)
			b.Run(fmt.Sprintf("%d/indexes=%d/tributary", n, indexes), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					_ = x.Update(newer[i/n%2][i%n])
				}
			})
			b.Run(fmt.Sprintf("%d/indexes=%d/client-go", n, indexes), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					_ = y.Update(newer[i/n%2][i%n])
				}
			})
		}
	}
}

// BenchmarkUpdateBetweenSnapshots updates as BenchmarkUpdate does, and takes a snapshot every so
// many writes, which BenchmarkUpdate never does. client-go's has none.
func BenchmarkUpdateBetweenSnapshots(b *testing.B) {
	for _, n := range sizes {
		pods := benchPods(n)
		newer := newerPods(pods)
		for _, indexes := range []int{0, 2} {
			for _, every := range []int{1, 8, 64, 1024} {
				x := ours(pods, indexes)
				b.Run(fmt.Sprintf("%d/indexes=%d/every=%d", n, indexes, every), func(b *testing.B) {
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						_ = x.Update(newer[i/n%2][i%n])
						if i%every == 0 {
							x.Snapshot()
						}
					}
				})
			}
		}
	}
}

// BenchmarkDeleteAdd takes a pod out and puts it back: two writes.
func BenchmarkDeleteAdd(b *testing.B) {
	for _, n := range sizes {
		pods := benchPods(n)
		order := rand.New(rand.NewPCG(1, 1)).Perm(n)
		x, y := ours(pods, 1), theirs(pods, 1)
		b.Run(fmt.Sprintf("%d/tributary", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_ = x.Delete(pods[order[i%n]])
				_ = x.Add(pods[order[i%n]])
			}
		})
		b.Run(fmt.Sprintf("%d/client-go", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_ = y.Delete(pods[order[i%n]])
				_ = y.Add(pods[order[i%n]])
			}
		})
	}
}

// BenchmarkByIndex reads the 110 pods of a node.
func BenchmarkByIndex(b *testing.B) {
	for _, n := range sizes {
		pods := benchPods(n)
		x, y := ours(pods, 1), theirs(pods, 1)
		b.Run(fmt.Sprintf("%d/tributary", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				for p := range byNode.Objects(x.Snapshot(), pods[i*7919%n].Spec.NodeName) {
					runtime.KeepAlive(p)
				}
			}
		})
		b.Run(fmt.Sprintf("%d/client-go", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				found, _ := y.ByIndex("node", pods[i*7919%n].Spec.NodeName)
				for _, p := range found {
					runtime.KeepAlive(p)
				}
			}
		})
	}
}

// BenchmarkSelect reads the 50 pods of an application by a selector of one label, which the peer
// has an index of.
func BenchmarkSelect(b *testing.B) {
	for _, n := range sizes {
		pods := benchPods(n)
		for i, p := range pods {
			p.Labels = map[string]string{"app": fmt.Sprint("app-", i/50), "tier": "web"}
		}
		x := store.NewIndexer(store.ByLabel[*corev1.Pod]("app"))
		_ = x.Replace(store.Items(pods...), store.At("1"))
		y := theirs(pods, 0)
		_ = y.AddIndexers(cache.Indexers{"app": func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Labels["app"]}, nil }})
		b.Run(fmt.Sprintf("%d/tributary", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				selector := labels.SelectorFromSet(labels.Set{"app": pods[i*7919%n].Labels["app"]})
				for p := range x.Snapshot().Select("", selector) {
					runtime.KeepAlive(p)
				}
			}
		})
		b.Run(fmt.Sprintf("%d/client-go", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				selector := labels.SelectorFromSet(labels.Set{"app": pods[i*7919%n].Labels["app"]})
				value, _ := selector.RequiresExactMatch("app")
				found, _ := y.ByIndex("app", value)
				for _, p := range found {
					runtime.KeepAlive(p)
				}
			}
		})
	}
}

// BenchmarkList reads every object once.
func BenchmarkList(b *testing.B) {
	for _, n := range sizes {
		pods := benchPods(n)
		x, y := ours(pods, 1), theirs(pods, 1)
		b.Run(fmt.Sprintf("%d/tributary", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, p := range x.Snapshot().All() {
					runtime.KeepAlive(p)
				}
			}
		})
		b.Run(fmt.Sprintf("%d/client-go", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, p := range y.List() {
					runtime.KeepAlive(p)
				}
			}
		})
	}
}

// BenchmarkHeap reports what a store of n pods holds beside the pods, per pod: without an index,
// with one, and with two. What an index costs is the difference.
func BenchmarkHeap(b *testing.B) {
	for _, n := range sizes {
		pods := benchPods(n)
		measure := func(b *testing.B, fill func() any) {
			const stores = 8 // so that what else the process holds does not count
			var before, after runtime.MemStats
			var kept [stores]any
			for b.Loop() {
				clear(kept[:])
				runtime.GC()
				runtime.ReadMemStats(&before)
				for i := range kept {
					kept[i] = fill()
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(kept)
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n)/stores, "heap-B/object")
		}
		for indexes := range 3 {
			b.Run(fmt.Sprintf("%d/indexes=%d/tributary", n, indexes), func(b *testing.B) {
				measure(b, func() any { return ours(pods, indexes) })
			})
			b.Run(fmt.Sprintf("%d/indexes=%d/client-go", n, indexes), func(b *testing.B) {
				measure(b, func() any { return theirs(pods, indexes) })
			})
		}
		runtime.KeepAlive(pods)
	}
}
