package apiserver_test

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/internal/pagetoken"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// mirrored copies the pods of a server into a cache, until the returned function is called.
func mirrored(t *testing.T, from kubernetes.Interface, into *watchcache.Cache[*corev1.Pod]) (stop func()) {
	t.Helper()
	r := reflector.New(listwatch.FromClient[corev1.Pod](from.CoreV1().RESTClient(), "pods"), into)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(cancel)
	require.NoError(t, r.WaitSynced(ctx))
	return func() {
		cancel()
		<-done
	}
}

// served puts a copy behind a listener.
func served(t *testing.T, cache *watchcache.Cache[*corev1.Pod]) kubernetes.Interface {
	t.Helper()
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.ServeCache(server, cache, builtin.Pods().View)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: listen(t, server), QPS: -1})
	require.NoError(t, err)
	return client
}

// unmarked is a server whose watches never send a bookmark.
type unmarked[T store.Object] struct{ listwatch.ListerWatcher[T] }

func (u unmarked[T]) Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[listwatch.Event[T], error] {
	options.AllowWatchBookmarks = false
	return u.ListerWatcher.Watch(ctx, options)
}

// mirror is a copy of a server's pods that proves itself fresh without a bookmark, and a client of
// it.
func mirror(t *testing.T, from kubernetes.Interface) (*watchcache.Cache[*corev1.Pod], kubernetes.Interface) {
	t.Helper()
	metadata := listwatch.FromClient[metav1.PartialObjectMetadata](from.CoreV1().RESTClient(), "pods")
	proof := watchcache.ServerOf(unmarked[*metav1.PartialObjectMetadata]{metadata})
	cache, err := watchcache.NewCache(watchcache.Pods(), watchcache.WithUpstream(proof))
	require.NoError(t, err)
	t.Cleanup(mirrored(t, from, cache))
	return cache, served(t, cache)
}

// TestMirrorsAreProvenFresh: a list from a copy of a copy shows each write that the origin has
// acknowledged. A version of another collection is reached without any event.
func TestMirrorsAreProvenFresh(t *testing.T) {
	origin := newRig(t)
	_, first := mirror(t, origin.client(t, wireProtobuf))
	_, second := mirror(t, first)
	pods := second.CoreV1().Pods("")
	for i := range 20 {
		created := origin.create(t, pod(fmt.Sprint("pod-", i)))
		list, err := pods.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, i+1)
		require.Equal(t, created.ResourceVersion, list.ResourceVersion)
		_, err = second.CoreV1().Pods("ns").Get(t.Context(), created.Name, metav1.GetOptions{})
		require.NoError(t, err)
	}
	for name, options := range map[string]func(version string) metav1.ListOptions{
		"newest": func(string) metav1.ListOptions { return metav1.ListOptions{} },
		"later":  func(version string) metav1.ListOptions { return metav1.ListOptions{ResourceVersion: version} },
		"exact": func(version string) metav1.ListOptions {
			return metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
		},
		"page": func(version string) metav1.ListOptions {
			return metav1.ListOptions{ResourceVersion: version, Limit: 100}
		},
		"further": func(version string) metav1.ListOptions {
			number, err := strconv.ParseInt(version, 10, 64)
			require.NoError(t, err)
			return metav1.ListOptions{Continue: pagetoken.From("ns/", number).String()}
		},
	} {
		other, err := origin.configMaps.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
		require.NoError(t, err)
		list, err := pods.List(t.Context(), options(other.ResourceVersion))
		require.NoError(t, err, name)
		require.Equal(t, other.ResourceVersion, list.ResourceVersion, name)
		require.Len(t, list.Items, 20, name)
	}
}

// TestPagesOutliveTheUpstreamsWatch: exact lists and continue tokens give the same before and after
// the watch of the origin has expired, and after another reflector has taken over.
func TestPagesOutliveTheUpstreamsWatch(t *testing.T) {
	origin := newRig(t)
	cache := newCache(t)
	stop := mirrored(t, origin.client(t, wireProtobuf), cache)
	pods := served(t, cache).CoreV1().Pods("")
	var versions, tokens []string
	note := func(version string) {
		require.NoError(t, cache.WaitFor(t.Context(), version))
		page, err := pods.List(t.Context(), metav1.ListOptions{Limit: 2})
		require.NoError(t, err)
		versions, tokens = append(versions, version), append(tokens, page.Continue)
	}
	origin.create(t, pod("a"), pod("b"), pod("c"))
	note(origin.create(t, pod("d")).ResourceVersion)
	removed, err := origin.pods.Remove("ns", "c")
	require.NoError(t, err)
	note(removed.ResourceVersion)
	note(origin.create(t, pod("e"), pod("f")).ResourceVersion)

	past := func() (lists [][]string) {
		for i, version := range versions {
			list, err := pods.List(t.Context(), metav1.ListOptions{
				ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
			})
			require.NoError(t, err)
			rest, err := pods.List(t.Context(), metav1.ListOptions{Limit: 10, Continue: tokens[i]})
			require.NoError(t, err)
			require.Equal(t, version, rest.ResourceVersion)
			require.Equal(t, listed(*list)[2:], listed(*rest))
			lists = append(lists, listed(*list))
		}
		return lists
	}
	before := past()
	require.Equal(t, [][]string{{"a@2", "b@3", "c@4", "d@5"}, {"a@2", "b@3", "d@5"}, {"a@2", "b@3", "d@5", "e@7", "f@8"}}, before)

	origin.pods.Expire()
	require.NoError(t, cache.WaitFor(t.Context(), origin.create(t, pod("g")).ResourceVersion))
	require.Equal(t, before, past(), "after a 410 and a relist")

	stop()
	_, err = origin.pods.Remove("ns", "a")
	require.NoError(t, err)
	last := origin.create(t, pod("h"))
	mirrored(t, origin.client(t, wireProtobuf), cache)
	require.NoError(t, cache.WaitFor(t.Context(), last.ResourceVersion))
	require.Equal(t, before, past(), "after another reflector's first list")
}
