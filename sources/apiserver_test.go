package sources_test

import (
	"net/http"
	"net/http/httptest"
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
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
)

// cluster is an API server with pods.
type cluster struct {
	t      *testing.T
	pods   *listwatchtest.Origin[*corev1.Pod]
	client rest.Interface
	refuse atomic.Int32 // the status that every request gets, unless zero
	cut    func()       // cuts all connections
	cutOff atomic.Bool  // from its etcd: only what its cache has is answered
}

func newCluster(t *testing.T) *cluster {
	server := listwatchtest.NewServer(t)
	c := &cluster{t: t, pods: listwatchtest.Serve(server, listwatchtest.Pods()).Origin()}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := int(c.refuse.Load()); code != 0 {
			http.Error(w, "refused", code)
			return
		}
		if query := r.URL.Query(); c.cutOff.Load() && query.Get("resourceVersion") == "" {
			http.Error(w, "etcd does not answer", http.StatusGatewayTimeout)
			return
		}
		server.ServeHTTP(w, r)
	}))
	c.cut = front.CloseClientConnections
	transport := &http.Transport{}
	var err error
	c.client, err = listwatch.NewRESTClient(&rest.Config{Host: front.URL, Transport: transport}, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	t.Cleanup(func() {
		server.Origin().Close()
		transport.CloseIdleConnections()
		front.Close()
	})
	return c
}

func onNode(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = node }
}

func (c *cluster) create(name string, edits ...func(*corev1.Pod)) {
	c.t.Helper()
	_, err := c.pods.Create(podOf(name, "v1", append([]func(*corev1.Pod){uid("")}, edits...)...))
	require.NoError(c.t, err)
}

func (c *cluster) change(name string, edit func(*corev1.Pod)) {
	c.t.Helper()
	pod, err := c.pods.Get("default", name)
	require.NoError(c.t, err)
	pod = pod.DeepCopy()
	edit(pod)
	_, err = c.pods.Update(pod)
	require.NoError(c.t, err)
}

func (c *cluster) status(name string, edit func(*corev1.Pod)) {
	c.t.Helper()
	pod, err := c.pods.Get("default", name)
	require.NoError(c.t, err)
	pod = pod.DeepCopy()
	edit(pod)
	_, err = c.pods.UpdateStatus(pod)
	require.NoError(c.t, err)
}

func (c *cluster) delete(name string, grace int64) {
	c.t.Helper()
	_, err := c.pods.Delete("default", name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
	require.NoError(c.t, err)
}

func (c *cluster) remove(name string) {
	c.t.Helper()
	_, err := c.pods.Remove("default", name)
	require.NoError(c.t, err)
}

func TestAPIServerSequence(t *testing.T) {
	c := newCluster(t)
	c.create("b", onNode("node-1"))
	c.create("a", onNode("node-1"))
	c.create("elsewhere", onNode("node-2"))
	c.create("unbound")
	r := start(t, sources.APIServer(c.client))
	r.expect("ADD api a=v1 b=v1")
	c.change("unbound", onNode("node-1"))
	r.expect("ADD api unbound=v1")
	c.change("a", label("x"))
	r.expect("UPDATE api a=v1")
	c.change("a", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "v2" })
	r.expect("UPDATE api a=v2")
	c.change("a", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/f"} })
	c.status("a", phase(corev1.PodRunning))
	u := r.update()
	require.Equal(t, "RECONCILE api a=v2", describe(u))
	require.Equal(t, []string{"example.com/f"}, u.Pods[0].Finalizers, "the whole new object is delivered")
	c.delete("a", 30)
	r.expect("DELETE api a=v2")
	c.status("a", phase(corev1.PodFailed))
	r.expect("RECONCILE api a=v2")
	c.change("a", func(p *corev1.Pod) { p.Finalizers = nil })
	c.remove("a")
	r.expect("REMOVE api a=v2")
	c.remove("b")
	r.expect("REMOVE api b=v1")
	c.create("b", onNode("node-1"))
	r.expect("ADD api b=v1")
	c.create("mirror", onNode("node-1"), func(p *corev1.Pod) {
		p.Annotations = map[string]string{manifest.MirrorAnnotation: "x", manifest.SourceAnnotation: sources.FileSource}
	})
	u = r.update()
	require.Equal(t, sources.Add, u.Op)
	require.Equal(t, sources.APISource, u.Pods[0].Annotations[manifest.SourceAnnotation])
	require.Equal(t, "watch", r.Status()[0].Mode)
	require.WithinDuration(t, time.Now(), r.Status()[0].LastContact, patience)
}

// A server that is cut off from its etcd has a state in its cache. A program that takes it, by
// option, is told the pods, and nothing is safe to prune until the server has said how old they
// are.
func TestAPIServerWithACachedFirstListIsNotSafeToPrune(t *testing.T) {
	t.Parallel() // it waits
	c := newCluster(t)
	c.cutOff.Store(true)
	c.create("a", onNode("node-1"))
	r := start(t, sources.APIServer(c.client, reflector.WithCachedFirstList(), reflector.WithLiveness(9*time.Second)))
	r.expect("ADD api a=v1")
	<-r.Synced()
	r.problem("the state is of unknown age")
	require.False(t, r.SafeToPrune(sources.APISource))
	c.create("b", onNode("node-1"))
	r.expect("ADD api b=v1")
	require.False(t, r.SafeToPrune(sources.APISource), "an event says nothing of how far the server is behind")
	c.cutOff.Store(false)
	c.cut()
	require.Eventually(t, func() bool { return r.SafeToPrune(sources.APISource) }, patience, time.Millisecond)
	r.healthy()
}

// By default such a state is not told at all.
func TestAPIServerThatIsCutOffFromEtcdIsNotSynced(t *testing.T) {
	c := newCluster(t)
	c.cutOff.Store(true)
	c.create("a", onNode("node-1"))
	r := start(t, sources.APIServer(c.client, reflector.WithBackoff(time.Millisecond, 10*time.Millisecond)))
	r.problem("504 Gateway Timeout")
	require.False(t, r.Status()[0].Seen)
	c.cutOff.Store(false)
	r.expect("ADD api a=v1")
}

func TestAPIServerWithoutPods(t *testing.T) {
	start(t, sources.APIServer(newCluster(t).client)).expect("ADD api")
}

func TestAPIServerThatRefuses(t *testing.T) {
	c := newCluster(t)
	c.refuse.Store(http.StatusForbidden)
	r := start(t, sources.APIServer(c.client, reflector.WithBackoff(time.Millisecond, time.Millisecond)))
	r.problem("403 Forbidden")
	require.False(t, r.Status()[0].Seen)
	c.create("p", onNode("node-1"))
	c.refuse.Store(0)
	r.expect("ADD api p=v1")
	r.healthy()
}

func TestAPIServerThatEndsForGood(t *testing.T) {
	c := newCluster(t)
	c.refuse.Store(http.StatusForbidden)
	r := start(t, sources.APIServer(c.client, reflector.WithFinalErrors()))
	<-r.done
	require.ErrorContains(t, r.err, "every source has ended: the api source has ended")
}

func TestAPIServerWithoutAClient(t *testing.T) {
	err := sources.New("node-1", sources.APIServer(nil)).Run(t.Context())
	require.ErrorContains(t, err, "no client")
}
