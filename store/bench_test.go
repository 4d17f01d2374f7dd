package store_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/store"
)

// The benchmarks run our Indexer and client-go's on the same pods, one index by node, 110 pods a node.

var sizes = []int{1_000, 10_000, 100_000}

func benchPods(n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = onNode(pod(fmt.Sprintf("deployment-%d-%d", i/50, i), i+1), fmt.Sprintf("node-%d", i/110))
	}
	return pods
}

func ours(pods []*corev1.Pod) *store.Indexer[*corev1.Pod] {
	x := store.NewIndexer(byNode)
	_ = x.Replace(store.Items(pods...), store.At("1"))
	return x
}

func theirs(pods []*corev1.Pod) cache.Indexer {
	x := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"node": func(obj any) ([]string, error) {
		return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
	}})
	all := make([]any, len(pods))
	for i, p := range pods {
		all[i] = p
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
		x, y := ours(pods), theirs(pods)
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

func BenchmarkUpdate(b *testing.B) {
	newer := func(p *corev1.Pod, i int) *corev1.Pod {
		next := *p
		next.ResourceVersion = strconv.Itoa(1_000_000 + i)
		return &next
	}
	for _, n := range sizes {
		pods := benchPods(n)
		x, y := ours(pods), theirs(pods)
		b.Run(fmt.Sprintf("%d/tributary", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_ = x.Update(newer(pods[i*7919%n], i))
			}
		})
		b.Run(fmt.Sprintf("%d/client-go", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_ = y.Update(newer(pods[i*7919%n], i))
			}
		})
	}
}

// BenchmarkByIndex reads the 110 pods of a node.
func BenchmarkByIndex(b *testing.B) {
	for _, n := range sizes {
		pods := benchPods(n)
		x, y := ours(pods), theirs(pods)
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

// BenchmarkList reads every object once.
func BenchmarkList(b *testing.B) {
	for _, n := range sizes {
		pods := benchPods(n)
		x, y := ours(pods), theirs(pods)
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

// BenchmarkHeap reports what a store of n pods holds beside the pods, per pod.
func BenchmarkHeap(b *testing.B) {
	for _, n := range sizes {
		pods := benchPods(n)
		measure := func(b *testing.B, fill func() any) {
			var before, after runtime.MemStats
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				kept := fill()
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(kept)
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "heap-B/object")
		}
		b.Run(fmt.Sprintf("%d/tributary", n), func(b *testing.B) { measure(b, func() any { return ours(pods) }) })
		b.Run(fmt.Sprintf("%d/client-go", n), func(b *testing.B) { measure(b, func() any { return theirs(pods) }) })
		runtime.KeepAlive(pods)
	}
}
