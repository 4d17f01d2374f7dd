package undelta_test

import (
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/undelta"
)

// BenchmarkUpdate is one update of a store of n pods, push included, here and in client-go's
// UndeltaStore. Neither receiver looks at the state: client-go's has been made a slice for it, ours
// asks for one if it wants one.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{110, 1_000, 10_000, 100_000} {
		objects, untyped := make([]*corev1.Pod, n), make([]any, n)
		for i := range objects {
			objects[i] = pod(fmt.Sprintf("pod-%d", i), i+1)
			untyped[i] = objects[i]
		}
		b.Run(fmt.Sprintf("%d/tributary", n), func(b *testing.B) {
			pushes := 0
			s := undelta.New(func(pods) { pushes++ })
			_ = s.Replace(store.Items(objects...), store.At(""))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_ = s.Update(next(objects[i%n], i))
			}
		})
		b.Run(fmt.Sprintf("%d/client-go", n), func(b *testing.B) {
			pushes := 0
			s := cache.NewUndeltaStore(func([]any) { pushes++ }, cache.MetaNamespaceKeyFunc)
			_ = s.Replace(untyped, "")
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_ = s.Update(next(objects[i%n], i))
			}
		})
	}
}

// next is a newer version of a pod, by a shallow copy that both sides pay for.
func next(p *corev1.Pod, i int) *corev1.Pod {
	newer := *p
	newer.ResourceVersion = strconv.Itoa(1_000_000 + i)
	return &newer
}
