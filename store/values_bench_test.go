package store_test

import (
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/store"
)

// withValues are two versions of a pod with n index values each. Half of the values are those of
// both.
func withValues(n int) (pods [2]*corev1.Pod) {
	for version := range pods {
		pods[version] = pod("a", version+1)
		pods[version].Finalizers = make([]string, n)
		for i := range n {
			pods[version].Finalizers[i] = "value-" + strconv.Itoa(i+version*n/2)
		}
	}
	return pods
}

var byFinalizer = store.NewIndex("finalizer", func(p *corev1.Pod) []string { return p.Finalizers })

// BenchmarkManyValues adds an object of many index values, updates it to one with half of them, and
// deletes it.
func BenchmarkManyValues(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1_000, 10_000, 100_000} {
		pods := withValues(n)
		x := store.NewIndexer(byFinalizer)
		y := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"finalizer": func(obj any) ([]string, error) {
			return obj.(metav1.Object).GetFinalizers(), nil
		}})
		b.Run(fmt.Sprintf("%d/tributary", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = x.Add(pods[0]), x.Update(pods[1]), x.Delete(pods[1])
			}
		})
		b.Run(fmt.Sprintf("%d/client-go", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = y.Add(pods[0]), y.Update(pods[1]), y.Delete(pods[1])
			}
		})
	}
}
