package watchcache_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/fieldsv1"
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

// BenchmarkUpdate is one write of a usual pod, whose writer tells its length or does not.
func BenchmarkUpdate(b *testing.B) {
	const objects = 1000
	usual := func(i, version int) *corev1.Pod {
		p := stored(fmt.Sprint("pod-", i), version)
		for j := range 3 {
			c := corev1.Container{Name: fmt.Sprint("c", j), Image: "registry.example/team/app:1.2.3"}
			for k := range 20 {
				c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", k), Value: fmt.Sprint("the value of ", k)})
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: fmt.Sprint("volume-", k), MountPath: fmt.Sprint("/var/lib/", k)})
			}
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
		for j := range 5 {
			p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{
				Manager: fmt.Sprint("manager-", j), FieldsV1: fieldsv1.Of(`{"f:metadata":{"f:labels":{"f:app":{}}}}`),
			})
		}
		return p
	}
	for name, bytes := range map[string]int{"length=told": 8000, "length=unknown": 0} {
		b.Run(name, func(b *testing.B) {
			c := newCache(b)
			require.NoError(b, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
			var two [2][objects]*corev1.Pod
			for i := range objects {
				two[0][i], two[1][i] = usual(i, 2), usual(i, 2)
			}
			version := 2
			b.ReportAllocs()
			for b.Loop() {
				version++
				p := two[version/objects%2][version%objects]
				p.ResourceVersion = fmt.Sprint(version)
				if err := c.PutSized(p, bytes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
