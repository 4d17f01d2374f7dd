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

// TestAWatchFromTheFutureOutlivesTheWindow: a client that is ahead of a restarted cache waits. Once
// the cache has reached its version, it is a watcher like any other, which is not cut for the
// changes that it does not see.
func TestAWatchFromTheFutureOutlivesTheWindow(t *testing.T) {
	c := newCache(t, watchcache.WithWindow(8))
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("10")))
	w, err := watchFrom(c, metav1.ListOptions{FieldSelector: "spec.nodeName=n1"}, 15)
	require.NoError(t, err)
	r := &reader{Watcher: w}
	defer w.Close()
	put := func(version int, node string) {
		p := stored(fmt.Sprint("pod-", version), version)
		onNode(node)(p)
		require.NoError(t, c.Add(p))
		r.read(t)
	}
	put(12, "n1") // the client has seen it
	for version := 13; version < 40; version++ {
		put(version, "n2")
	}
	put(40, "n1")
	require.Equal(t, []string{"ADDED ns/pod-40@40 uid-pod-40  n1"}, r.lines)
}
