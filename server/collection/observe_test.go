package collection_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// TestOnChangeMissesNothing: neither the window nor a compaction makes the observer skip a change.
func TestOnChangeMissesNothing(t *testing.T) {
	pods := newPods(t, watchcache.WithWindow(1))
	var told []string
	pods.OnChange(func(e listwatch.Event[*corev1.Pod]) {
		told = append(told, fmt.Sprintf("%s %s %s", e.Type, store.KeyOf(e.Object), e.ResourceVersion))
	})
	var want []string
	for i := range 5 {
		p := create(t, pods, pod(fmt.Sprint("p", i)))
		want = append(want, "ADDED "+store.KeyOf(p)+" "+p.ResourceVersion)
	}
	pods.Expire()
	next := pod("p1")
	next.Labels = map[string]string{"changed": "yes"}
	p, err := pods.Update(next)
	require.NoError(t, err)
	want = append(want, "MODIFIED ns/p1 "+p.ResourceVersion)
	p, err = pods.Remove("ns", "p2")
	require.NoError(t, err)
	want = append(want, "DELETED ns/p2 "+p.ResourceVersion)
	require.Equal(t, want, told)
}
