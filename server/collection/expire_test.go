package collection_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExpireEndsWatchesAndMakesEveryVersionTooOld(t *testing.T) {
	pods := newPods(t)
	last := create(t, pods, pod("a"))
	under := fromNow(t, pods)
	pods.Expire()
	under.RequireExpired()
	start(t, pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: last.ResourceVersion})).RequireExpired()

	whole := start(t, pods.Watch(t.Context(), metav1.ListOptions{}))
	whole.Require("ADDED a@2")
	b := create(t, pods, pod("b"))
	require.Equal(t, "4", b.ResourceVersion, "the expiry took a version")
	whole.Require("ADDED b@4")
}

func TestBookmarksOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t)
		create(t, pods, pod("a"))
		wanted := start(t, pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1", AllowWatchBookmarks: true}))
		unwanted := start(t, pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"}))
		wanted.Require("ADDED a@2")
		unwanted.Require("ADDED a@2")
		pods.SendBookmarks()
		create(t, pods, pod("b"))
		wanted.Require("ADDED b@3", "BOOKMARK 3")
		unwanted.Require("ADDED b@3")
		create(t, pods, pod("c"))
		wanted.Require("ADDED c@4")
		unwanted.Require("ADDED c@4")
	})
}
