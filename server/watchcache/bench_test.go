package watchcache_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/watchcache"
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

// BenchmarkPagesBesideAWriter is one page of an old version, with a write between two pages.
func BenchmarkPagesBesideAWriter(b *testing.B) {
	const objects, limit = 50_000, 500
	var pods []*corev1.Pod
	for i := range objects {
		pods = append(pods, stored(fmt.Sprintf("pod-%06d", i), i+1))
	}
	c := newCache(b)
	require.NoError(b, c.Replace(store.Items(pods...), store.At(fmt.Sprint(objects))))
	r := watchcache.Request{}
	r.Limit = limit
	b.ReportAllocs()
	version := objects
	for b.Loop() {
		page, err := c.Page(b.Context(), r)
		if err != nil {
			b.Fatal(err)
		}
		if r.Continue = page.Meta.Continue; len(page.Objects) != limit {
			b.Fatal(len(page.Objects))
		}
		version++
		if err := c.Update(stored(fmt.Sprintf("pod-%06d", version*7919%objects), version)); err != nil {
			b.Fatal(err)
		}
	}
}
