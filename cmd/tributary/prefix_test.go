package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNoWriteIntoACluster: a prefix with keys of kube-apiserver's is not written by chance. It is
// read with --registry, and another prefix of the same etcd is written.
func TestNoWriteIntoACluster(t *testing.T) {
	origin := launch(t, "--data", filepath.Join(t.TempDir(), "data"), "--resource", "pods")
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{origin.etcd}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = etcd.Close() })
	refused := func(flags ...string) string {
		t.Helper()
		var stderr strings.Builder
		flags = append([]string{"serve", "--listen", "127.0.0.1:0", "--etcd", origin.etcd, "--resource", "pods"}, flags...)
		require.Equal(t, exitFailed, run(t.Context(), flags, io.Discard, &stderr))
		require.Contains(t, stderr.String(), "--write-anyway")
		require.Contains(t, stderr.String(), "--registry")
		return stderr.String()
	}
	for _, key := range []string{
		"/registry/ranges/serviceips", "/registry/masterleases/10.0.0.1", "/registry/apiregistration.k8s.io/apiservices/v1.apps",
		"/registry/peerserverleases/apiserver-a", "/registry/namespaces/kube-system", "compact_rev_key",
	} {
		_, err := etcd.Put(t.Context(), key, "a")
		require.NoError(t, err)
		for _, prefix := range []string{"/registry", "registry", "/registry/", "/registry/below"} {
			require.Contains(t, refused("--etcd-prefix", prefix), key, prefix)
		}
		_, err = etcd.Delete(t.Context(), key)
		require.NoError(t, err)
	}
	_, err = etcd.Put(t.Context(), "/clusters/one/ranges/serviceips", "a")
	require.NoError(t, err)
	refused("--etcd-prefix", "/clusters/one")
	_, err = etcd.Put(t.Context(), "/registry/ranges/serviceips", "a")
	require.NoError(t, err)

	beside := launch(t, "--etcd", origin.etcd, "--resource", "pods")
	_, err = beside.client().CoreV1().Pods("default").Create(t.Context(), pod("web"), metav1.CreateOptions{})
	require.NoError(t, err)
	present, err := etcd.Get(t.Context(), "/tributary/pods/default/web", clientv3.WithCountOnly())
	require.NoError(t, err)
	require.EqualValues(t, 1, present.Count)

	registry := launch(t, "--etcd", origin.etcd, "--resource", "pods", "--registry")
	list, err := registry.client().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	_, err = registry.client().CoreV1().Pods("default").Create(t.Context(), pod("web"), metav1.CreateOptions{})
	require.True(t, apierrors.IsMethodNotSupported(err), "%v", err)

	anyway := launch(t, "--etcd", origin.etcd, "--resource", "pods", "--etcd-prefix", "/registry", "--write-anyway")
	_, err = anyway.client().CoreV1().Pods("default").Create(t.Context(), pod("web"), metav1.CreateOptions{})
	require.NoError(t, err)
}
