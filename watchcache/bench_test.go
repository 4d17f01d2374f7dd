package watchcache_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/store"
)

// BenchmarkFanOut is one write and its delivery to every watcher.
func BenchmarkFanOut(b *testing.B) {
	for _, watchers := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("watchers=%d", watchers), func(b *testing.B) {
			c := newCache(b)
			require.NoError(b, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
			follows := make([]*follow, watchers)
			for i := range follows {
				follows[i] = start(b, c.Watch(b.Context(), metav1.ListOptions{ResourceVersion: "1"}))
			}
			b.ReportAllocs()
			version := 1
			for b.Loop() {
				version++
				if err := c.Update(stored("a", version)); err != nil {
					b.Fatal(err)
				}
				for _, f := range follows {
					if _, err, _ := f.Pull(); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*watchers), "ns/watcher")
		})
	}
}
