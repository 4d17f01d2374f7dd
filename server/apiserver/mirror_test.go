package apiserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
)

// TestMirror chains two servers: a reflector copies one's pods into a cache, which the other serves
// on, under the first one's resource versions.
func TestMirror(t *testing.T) {
	origin, mirror := newRig(t, watchcache.WithBookmarkInterval(50*time.Millisecond)), newCache(t)
	origin.create(t, pod("a"), pod("b"))
	r := reflector.New(listwatch.FromClient[corev1.Pod](origin.client(t, wireProtobuf).CoreV1().RESTClient(), "pods"), mirror)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	defer func() { cancel(); <-done }()
	require.NoError(t, r.WaitSynced(ctx))

	server, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.ServeCache(server, mirror, builtin.Pods().View)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: listen(t, server)})
	require.NoError(t, err)
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"a@2", "b@3"}, listed(*list))
	watcher, err := client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	defer watcher.Stop()

	c := origin.create(t, pod("c"))
	event := next(t, watcher)
	require.Equal(t, watch.Added, event.Type)
	require.Equal(t, c.ResourceVersion, event.Object.(*corev1.Pod).ResourceVersion)
	_, err = origin.pods.Remove("ns", "a")
	require.NoError(t, err)
	event = next(t, watcher)
	require.Equal(t, watch.Deleted, event.Type)
	require.Equal(t, "5", event.Object.(*corev1.Pod).ResourceVersion)

	_, err = origin.configMaps.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}})
	require.NoError(t, err)
	eventually(t, func() bool { return mirror.Snapshot().ResourceVersion() == "6" }, "a bookmark moves the copy on")
}
