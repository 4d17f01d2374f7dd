package watchcache_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/watchcache"
)

func TestExpireEndsWatchesAndMakesEveryVersionTooOld(t *testing.T) {
	_, pods := newPods(t)
	last := create(t, pods, pod("a"))
	under := fromNow(t, pods)
	pods.Expire()
	under.requireExpired()
	start(t, pods.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: last.ResourceVersion})).requireExpired()

	whole := start(t, pods.Watch(t.Context(), watchcache.WatchOptions{}))
	whole.require("ADDED a@2")
	b := create(t, pods, pod("b"))
	require.Equal(t, "4", b.ResourceVersion, "the expiry took a version")
	whole.require("ADDED b@4")
}

func TestBookmarksOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, pods := newPods(t)
		create(t, pods, pod("a"))
		wanted := start(t, pods.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: "1", Bookmarks: true}))
		unwanted := start(t, pods.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: "1"}))
		wanted.require("ADDED a@2")
		unwanted.require("ADDED a@2")
		pods.SendBookmarks()
		create(t, pods, pod("b"))
		wanted.require("ADDED b@3", "BOOKMARK 3")
		unwanted.require("ADDED b@3")
		create(t, pods, pod("c"))
		wanted.require("ADDED c@4")
		unwanted.require("ADDED c@4")
	})
}

func TestParseTarget(t *testing.T) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for path, want := range map[string]watchcache.Target{
		"/api/v1/pods":                        {Resource: pods},
		"/api/v1/namespaces/ns/pods/a/status": {Resource: pods, Namespace: "ns", Name: "a", Subresource: "status"},
		"/apis/g/v2/namespaces/ns/widgets/w":  {Resource: schema.GroupVersionResource{Group: "g", Version: "v2", Resource: "widgets"}, Namespace: "ns", Name: "w"},
		"/api/v1/namespaces/ns":               {Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Name: "ns"},
	} {
		got, ok := watchcache.ParseTarget(path)
		require.True(t, ok, path)
		require.Equal(t, want, got, path)
	}
	for _, path := range []string{"/", "/api/v1", "/apis/g/v2", "/version", "/api/v1/pods/a/b/c", "/api/v1/namespaces//pods"} {
		_, ok := watchcache.ParseTarget(path)
		require.False(t, ok, path)
	}
}
