package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
)

// copied serves a copy of a server's pods, as the documentation of apiserver shows it.
func copied(t *testing.T, from kubernetes.Interface) (url string) {
	t.Helper()
	client := from.CoreV1().RESTClient()
	pods := listwatch.FromClient[corev1.Pod](client, "pods")
	names := listwatch.FromClient[metav1.PartialObjectMetadata](client, "pods")
	cache, err := watchcache.NewCache(watchcache.Pods(), watchcache.WithUpstream(watchcache.ServerOf(names)))
	require.NoError(t, err)
	t.Cleanup(cache.Close)
	filler := reflector.New(pods, cache)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- filler.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	require.NoError(t, filler.WaitSynced(ctx))
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.ServeCache(server, cache, builtin.Pods().View, apiserver.FilledBy(filler))
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	t.Cleanup(server.Close)
	return web.URL
}

// TestAFrozenUpstreamIsNoticed: no list of a relay misses a write that its upstream has
// acknowledged. Five seconds after the upstream's process has been stopped, no answer of the relay
// is a 200 without a warning, and it is not ready. It serves again when the process goes on.
func TestAFrozenUpstreamIsNoticed(t *testing.T) {
	p := launch(t, "--data", filepath.Join(t.TempDir(), "data"), "--resource", "pods")
	url := copied(t, p.client())
	copied, err := kubernetes.NewForConfig(&rest.Config{Host: url, QPS: -1})
	require.NoError(t, err)
	for i := range 60 {
		_, err := p.client().CoreV1().Pods("default").Create(t.Context(), pod(fmt.Sprint("pod-", i)), metav1.CreateOptions{})
		require.NoError(t, err)
		list, err := copied.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, i+1, "an acknowledged write is missing")
	}
	answer := func(path string) (code int, warning string) {
		t.Helper()
		response, err := http.Get(url + path)
		require.NoError(t, err)
		defer response.Body.Close()
		return response.StatusCode, response.Header.Get("Warning")
	}
	const newest, anyVersion = "/api/v1/pods", "/api/v1/pods?resourceVersion=0"
	code, warning := answer(newest)
	require.Equal(t, 200, code)
	require.Empty(t, warning)

	require.NoError(t, p.process.Process.Signal(syscall.SIGSTOP))
	var stopped syscall.WaitStatus // a signal is on its way for a while
	_, err = syscall.Wait4(p.process.Process.Pid, &stopped, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, stopped.Stopped())
	for frozen := time.Now(); time.Since(frozen) < 10*time.Second; {
		asked := time.Since(frozen)
		code, _ := answer(newest)
		require.GreaterOrEqual(t, code, 500, "after %s", asked)
		code, warning := answer(anyVersion)
		ready, _ := answer("/readyz")
		if asked > 5*time.Second {
			require.Contains(t, warning, "pods: stale since ", "%d after %s", code, asked)
			require.Equal(t, 500, ready)
		}
	}
	require.NoError(t, p.process.Process.Signal(syscall.SIGCONT))
	require.Eventually(t, func() bool {
		code, warning := answer(newest)
		ready, _ := answer("/readyz")
		return code == 200 && warning == "" && ready == 200
	}, patience, 100*time.Millisecond)
}
