package reflector_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// TestManyReflectorsShareConnectionsAndStopTogether: a thousand reflectors with one client over
// HTTP/2 need as few connections as their number of streams asks for, and leave none open.
func TestManyReflectorsShareConnectionsAndStopTogether(t *testing.T) {
	const many = 1000
	api := listwatchtest.NewServer(t)
	collection := listwatchtest.Serve(api, listwatchtest.Pods()).Origin()
	for i := range 10 {
		_, err := collection.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%d", i)}})
		require.NoError(t, err)
	}
	var open atomic.Int64
	server := httptest.NewUnstartedServer(api)
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	server.StartTLS()
	defer server.Close()
	defer api.Origin().Close()
	config := &rest.Config{Host: server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	defer client.(*rest.RESTClient).Client.CloseIdleConnections()

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	stores := make([]*store.Indexer[*corev1.Pod], many)
	reflectors := make([]*reflector.Reflector[*corev1.Pod], many)
	for i := range stores {
		stores[i] = store.NewIndexer[*corev1.Pod]()
		reflectors[i] = reflector.New(listwatch.FromClient[corev1.Pod](client, "pods"), stores[i])
		running.Go(func() { _ = reflectors[i].Run(ctx) })
	}
	for i := range stores {
		require.NoError(t, reflectors[i].WaitSynced(ctx))
		require.Equal(t, 10, stores[i].Snapshot().Len())
	}
	_, err = collection.Remove("default", "pod-0")
	require.NoError(t, err)
	for i := range stores {
		require.Eventually(t, func() bool { return stores[i].Snapshot().Len() == 9 }, 30*time.Second, time.Millisecond)
	}
	// While there is no connection yet, net/http dials one per request, and drops them once it has
	// learnt that the first can be shared.
	require.Eventually(t, func() bool { return open.Load() <= many/20 }, 30*time.Second, time.Millisecond)
	t.Logf("%d reflectors share %d connections", many, open.Load())
	cancel()
	running.Wait() // TestMain fails on a goroutine left behind
}

// TestStopInTheMiddleOfALargeList stops a reflector when a part of 50,000 pods has come and the
// server still holds the rest.
func TestStopInTheMiddleOfALargeList(t *testing.T) {
	half, gone := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`)
		for i := range 25_000 {
			fmt.Fprintf(w, `{"metadata":{"name":"pod-%d","resourceVersion":"1"}},`, i)
		}
		w.(http.Flusher).Flush()
		close(half)
		<-r.Context().Done()
		close(gone)
	}))
	defer server.Close()
	client, err := listwatch.NewRESTClient(&rest.Config{Host: server.URL}, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	pods := store.NewIndexer[*corev1.Pod]()
	r := reflector.New(listwatch.FromClient[corev1.Pod](client, "pods", listwatch.WithoutWatchList()), pods)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	<-half
	began := time.Now()
	cancel()
	require.NoError(t, <-ended)
	t.Logf("stopped after %s", time.Since(began))
	<-gone // the server saw the connection go
	require.Zero(t, pods.Snapshot().Len(), "half a list is no state")
	require.False(t, r.Status().Synced)
}
