package e2e_test

import (
	"context"
	"fmt"
	"iter"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// unmarked is a server whose watches never send a bookmark.
type unmarked[T store.Object] struct{ listwatch.ListerWatcher[T] }

func (u unmarked[T]) Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[listwatch.Event[T], error] {
	options.AllowWatchBookmarks = false
	return u.ListerWatcher.Watch(ctx, options)
}

// TestRelayIsProvenFresh: a copy of a real API server, served on, answers a list without a version
// with every write that the server has acknowledged. It shows the version of another collection,
// exactly if asked to, without a bookmark, and refuses one of the future.
func TestRelayIsProvenFresh(t *testing.T) {
	t.Parallel()
	onServers(t, relayIsProvenFresh)
}

func relayIsProvenFresh(t *testing.T, on server) {
	t.Parallel()
	c := on.start(t)
	w := newWorld(t, c)
	upstream := w.client.CoreV1().RESTClient()
	metadata := listwatch.FromClient[metav1.PartialObjectMetadata](upstream, "pods")
	proof := watchcache.ServerOf(unmarked[*metav1.PartialObjectMetadata]{metadata})
	cache, err := watchcache.NewCache(watchcache.Pods(), watchcache.WithUpstream(proof))
	require.NoError(t, err)
	r := reflector.New(unmarked[*corev1.Pod]{listwatch.FromClient[corev1.Pod](upstream, "pods")}, cache)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	require.NoError(t, r.WaitSynced(ctx))
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.ServeCache(server, cache, builtin.Pods().View)
	listener := httptest.NewServer(server)
	t.Cleanup(func() { server.Close(); listener.Close() })
	relay, err := kubernetes.NewForConfig(&rest.Config{Host: listener.URL, QPS: -1})
	require.NoError(t, err)

	result := table("read", "API server", "relay")
	compare := func(name string, prepare func() metav1.ListOptions, check func(*corev1.PodList, error)) {
		took := make([]time.Duration, 2)
		for i, client := range []kubernetes.Interface{w.client, relay} {
			options := prepare()
			list := &corev1.PodList{}
			request := client.CoreV1().RESTClient().Get().Resource("pods").VersionedParams(&options, scheme.ParameterCodec)
			began := time.Now()
			check(list, request.MaxRetries(0).Do(t.Context()).Into(list))
			took[i] = time.Since(began)
		}
		result.add(name, took[0].Round(time.Millisecond), took[1].Round(time.Millisecond))
	}
	written := 0
	compare("after a write of a pod", func() metav1.ListOptions {
		_, err := w.client.CoreV1().Pods("default").Create(t.Context(), newPod(podName(written), nodeName(0)), metav1.CreateOptions{})
		require.NoError(t, err)
		written++
		return metav1.ListOptions{}
	}, func(list *corev1.PodList, err error) {
		require.NoError(t, err)
		require.Len(t, list.Items, written)
	})
	configMap := func() string {
		made, err := w.client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "other-"},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		return made.ResourceVersion
	}
	whole := func(list *corev1.PodList, err error) {
		require.NoError(t, err)
		require.Len(t, list.Items, written)
	}
	compare("after a write of another collection", func() metav1.ListOptions {
		configMap()
		return metav1.ListOptions{}
	}, whole)
	compare("not older than another collection's version", func() metav1.ListOptions {
		return metav1.ListOptions{ResourceVersion: configMap(), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
	}, whole)
	compare("exactly at another collection's version", func() metav1.ListOptions {
		return metav1.ListOptions{ResourceVersion: configMap(), ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	}, whole)
	compare("a page at another collection's version", func() metav1.ListOptions {
		return metav1.ListOptions{ResourceVersion: configMap(), Limit: 100}
	}, whole)
	compare("not older than a version of the future", func() metav1.ListOptions {
		return metav1.ListOptions{ResourceVersion: fmt.Sprint(1 << 40), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
	}, func(_ *corev1.PodList, err error) {
		require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "%v", err)
	})
	t.Logf("\n%s", result)
}
