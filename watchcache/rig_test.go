package watchcache_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/watchcache"
)

const (
	wireJSON     = "application/json"
	wireProtobuf = "application/vnd.kubernetes.protobuf"
)

// rig is a server with pods and config maps behind a real listener.
type rig struct {
	*watchcache.Server
	pods       *watchcache.Collection[*corev1.Pod]
	configMaps *watchcache.Collection[*corev1.ConfigMap]
	url        string
}

func newRig(t testing.TB, options ...watchcache.Option) *rig {
	t.Helper()
	s, err := watchcache.NewServer(options...)
	require.NoError(t, err)
	r := &rig{
		Server:     s,
		pods:       watchcache.Serve(s, watchcache.Pods()),
		configMaps: watchcache.Serve(s, watchcache.Core[*corev1.ConfigMap]("configmaps", "ConfigMap")),
	}
	r.url = listen(t, s)
	return r
}

// listen puts a server behind a listener until the test ends, and returns its URL.
func listen(t testing.TB, s *watchcache.Server) string {
	t.Helper()
	listener := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		listener.Close()
	})
	return listener.URL
}

func (r *rig) config(t testing.TB, contentType string) *rest.Config {
	t.Helper()
	config := &rest.Config{Host: r.url, QPS: -1}
	config.ContentType = contentType
	config.AcceptContentTypes = contentType
	return config
}

func (r *rig) client(t testing.TB, contentType string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(r.config(t, contentType))
	require.NoError(t, err)
	return client
}

// pod is a pod to be created, in namespace "ns".
func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}
	for _, do := range change {
		do(p)
	}
	return p
}

func onNode(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, key, value) }
}

func inNamespace(namespace string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Namespace = namespace }
}

func (r *rig) create(t testing.TB, pods ...*corev1.Pod) (last *corev1.Pod) {
	t.Helper()
	for _, p := range pods {
		created, err := r.pods.Create(p)
		require.NoError(t, err)
		last = created
	}
	return last
}
