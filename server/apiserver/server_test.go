package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
)

func TestServingTwiceIsAMistake(t *testing.T) {
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.Serve(s, builtin.Pods())
	require.Panics(t, func() { apiserver.Serve(s, builtin.Pods()) })
	require.Panics(t, func() { apiserver.Serve(s, apiserver.Resource[*corev1.Pod]{}) })
}

// TestRemoveEndsWatches: a resource that is removed, or replaced, is served no more: its watches
// end, its paths are not found, or are the next collection's.
func TestRemoveEndsWatches(t *testing.T) {
	r := newRig(t)
	client := r.client(t, wireJSON).CoreV1()
	follow := func() <-chan watch.Event {
		stream, err := client.Pods("").Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		t.Cleanup(stream.Stop)
		return stream.ResultChan()
	}
	r.create(t, pod("old"))
	replaced := follow()
	require.Equal(t, "old", (<-replaced).Object.(*corev1.Pod).Name)
	next, err := collection.New(builtin.Pods().Kind, builtin.Pods().Rules, watchcache.NewRevision())
	require.NoError(t, err)
	_, err = next.Create(pod("new"))
	require.NoError(t, err)
	require.Panics(t, func() { apiserver.ServeCollection(r.Server, next, builtin.Pods().View) })
	apiserver.ServeCollection(r.Server, next, builtin.Pods().View, apiserver.Replacing())
	_, open := <-replaced
	require.False(t, open)
	removed := follow()
	require.Equal(t, "new", (<-removed).Object.(*corev1.Pod).Name)

	require.True(t, r.Remove(corev1.SchemeGroupVersion.WithResource("pods")))
	require.False(t, r.Remove(corev1.SchemeGroupVersion.WithResource("pods")))
	_, open = <-removed
	require.False(t, open)
	_, err = client.Pods("").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	served, err := r.client(t, wireJSON).Discovery().ServerResourcesForGroupVersion("v1")
	require.NoError(t, err)
	require.Len(t, served.APIResources, 1, "the config maps")
}

// TestNewestVersionIsPreferred: whatever the order in which versions came.
func TestNewestVersionIsPreferred(t *testing.T) {
	r := newRig(t)
	for _, version := range []string{"v1beta1", "v2", "v1"} {
		apiserver.Serve(r.Server, apiserver.Resource[*unstructured.Unstructured]{Kind: watchcache.Kind[*unstructured.Unstructured]{
			Group: "example.com", Version: version, Plural: "shirts", Kind: "Shirt",
		}})
	}
	groups, err := r.client(t, wireJSON).Discovery().ServerGroups()
	require.NoError(t, err)
	require.Equal(t, "v2", groups.Groups[1].PreferredVersion.Version)
	require.Equal(t, "example.com/v1beta1", groups.Groups[1].Versions[2].GroupVersion)
}
