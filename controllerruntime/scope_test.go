package controllerruntime_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestAWriteShowsInItsOwnCacheAlone: controller-runtime lets a program read without copies. A write
// into such an object is against the rule, and stays in the cache that it was read from.
func TestAWriteShowsInItsOwnCacheAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		made := pod("ns", "a", "n1")
		made.Labels = map[string]string{"app": "a"}
		pods.Create(made)
		yes := true
		shared := cache.Options{DefaultUnsafeDisableDeepCopy: &yes}
		first, second := newCache(t, pods, shared), newCache(t, pods, shared)
		start(t, first)
		start(t, second)
		var written, read corev1.Pod
		require.NoError(t, first.Get(t.Context(), keyOf("ns", "a"), &written))
		synctest.Wait() // the cache has read the object for its bill
		written.Labels["written"] = "yes"
		require.NoError(t, second.Get(t.Context(), keyOf("ns", "a"), &read))
		require.NotContains(t, read.Labels, "written")
	})
}
