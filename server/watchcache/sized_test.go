package watchcache_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// TestWeightsComeFromTheWire: a copy that a reflector fills knows the length of each object that
// comes. So pods that are large at once do not exceed the window's bytes.
func TestWeightsComeFromTheWire(t *testing.T) {
	for name, options := range map[string][]listwatch.Option{"protobuf": nil, "JSON": {listwatch.WithJSON()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const most, kib = 2 << 20, 100
				server := listwatchtest.New(t, listwatchtest.Pods())
				pod := server.Create(&corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
				})
				c := newCache(t, watchcache.WithWindowBytes(most))
				r := reflector.New(server.ListerWatcher(options...), c)
				go r.Run(t.Context())
				require.NoError(t, r.WaitSynced(t.Context()))
				write := func(text string, times int) {
					for range times {
						next := pod.DeepCopy()
						next.Status.Message = text
						pod = server.UpdateStatus(next)
						synctest.Wait()
						require.Equal(t, pod.ResourceVersion, c.ResourceVersion())
						require.LessOrEqual(t, watchcache.HeldBy(c).Bytes, int64(most/2))
					}
				}
				write("small", 100)
				write(strings.Repeat("x", kib<<10), 30)
				require.LessOrEqual(t, watchcache.HeldBy(c).Window, most/2/(kib<<10))
				server.Remove(pod)
				synctest.Wait()
				require.LessOrEqual(t, watchcache.HeldBy(c).Window, most/2/(kib<<10))
			})
		})
	}
}

// TestSizesMayBeUnknown: a write with a size and one without do the same.
func TestSizesMayBeUnknown(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	var sized store.Sized[*corev1.Pod] = c
	watch := start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"}))
	require.NoError(t, sized.PutSized(stored("a", 2), 1000))
	require.NoError(t, c.Update(stored("a", 3)))
	require.NoError(t, sized.DeleteSized(stored("a", 4), 0))
	watch.Require("ADDED a@2", "MODIFIED a@3", "DELETED a@4")
}
