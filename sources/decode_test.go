package sources_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

// kubeletPods is what a kubelet answers at /pods: two pods that run, one of them from a manifest.
const kubeletPods = `{"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [
	{"metadata": {"name": "web-5d8", "namespace": "default", "uid": "0c6f", "resourceVersion": "71",
		"annotations": {"kubernetes.io/config.source": "api", "kubernetes.io/config.seen": "2026-01-01T00:00:00Z"}},
	 "spec": {"nodeName": "node-1", "serviceAccountName": "web", "containers": [{"name": "main", "image": "nginx"}]},
	 "status": {"phase": "Running"}},
	{"metadata": {"name": "etcd-node-1", "namespace": "kube-system", "uid": "9e10",
		"annotations": {"kubernetes.io/config.hash": "9e10", "kubernetes.io/config.source": "file"}},
	 "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "etcd"}]}}]}`

// listen runs sources and returns their channel.
func listen(t *testing.T, options ...sources.Option) *sources.Sources {
	pods := sources.New("node-1", options...)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range pods.Updates() {
		}
		require.NoError(t, <-ended)
	})
	return pods
}

func TestKubeletsOwnListIsTakenAsItIs(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/pods" || r.Header.Get("Authorization") != "Bearer hunter2" {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, kubeletPods)
	}))
	defer server.Close()
	token, ca := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "ca.pem")
	put(t, token, "old\n")
	put(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	pods := listen(t, sources.Kubelet(server.URL+"/pods", static.WithTokenFile(token), static.WithCA(ca), static.WithInterval(5*time.Millisecond)))
	require.Eventually(t, func() bool {
		problems := pods.Status()[0].Problems
		return len(problems) == 1 && problems[0].Error() == server.URL+"/pods: the server answered 401 Unauthorized"
	}, patience, time.Millisecond)
	put(t, token, "hunter2\n")
	update := <-pods.Updates()
	require.Equal(t, "ADD web-5d8 etcd-node-1", tell(update))
	web := update.Pods[0]
	require.Equal(t, "0c6f", string(web.UID))
	require.Equal(t, "web", web.Spec.ServiceAccountName, "a static pod may not have one")
	require.Equal(t, corev1.PodRunning, web.Status.Phase)
	require.Equal(t, sources.APISource, web.Annotations[manifest.SourceAnnotation])
}

func TestKubeletRefusesAnythingElse(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"kind": "Pod", "metadata": {"name": "hunter2"}}`)
	}))
	defer server.Close()
	pods := listen(t, sources.Kubelet(server.URL+"/pods"))
	require.Eventually(t, func() bool { return len(pods.Status()[0].Problems) == 1 }, time.Minute, time.Millisecond)
	require.EqualError(t, pods.Status()[0].Problems[0], server.URL+"/pods: the answer is not a PodList in JSON: is this a kubelet's /pods?")
	require.False(t, pods.Status()[0].Seen)
}

// TestDecodeOfOnesOwn reads names, a line each; a bad line costs only itself and keeps what it
// declared.
func TestDecodeOfOnesOwn(t *testing.T) {
	var body atomic.Pointer[string]
	answer := func(text string) { body.Store(&text) }
	answer("ab")
	decode := func(_ string, data []byte) (pods []*corev1.Pod, rejected []error) {
		for _, c := range data {
			if c == '?' {
				rejected = append(rejected, errors.New("not a letter"))
				continue
			}
			name := string(c)
			if c == '_' {
				name = ""
			}
			pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return pods, rejected
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, *body.Load()) }))
	defer server.Close()
	pods := listen(t, sources.From(static.HTTP(server.URL, decode, static.WithInterval(5*time.Millisecond))))
	require.Equal(t, "ADD a b", tell(<-pods.Updates()))
	answer("b?c_")
	require.Equal(t, "ADD c", tell(<-pods.Updates()), "a may be what the bad part is about")
	require.Eventually(t, func() bool { return len(pods.Status()[0].Problems) == 2 }, time.Minute, time.Millisecond)
	require.ErrorContains(t, pods.Status()[0].Problems[1], "item 3: it has no name")
	answer("c")
	require.Equal(t, "REMOVE a b", tell(<-pods.Updates()))
}
