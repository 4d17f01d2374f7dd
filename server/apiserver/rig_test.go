package apiserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/internal/cachetest"
	"github.com/tributary-go/tributary/server/watchcache"
)

const (
	wireJSON     = "application/json"
	wireProtobuf = "application/vnd.kubernetes.protobuf"
)

// rig is a server with pods and config maps behind a real listener.
type rig struct {
	*apiserver.Server
	handler    http.Handler // the server, or a handler around it
	pods       *collection.Collection[*corev1.Pod]
	configMaps *collection.Collection[*corev1.ConfigMap]
	url        string
	web        *http.Client
}

// newHTTP2Rig has a client that speaks HTTP/2, without TLS.
func newHTTP2Rig(t testing.TB, options ...watchcache.Option) *rig {
	t.Helper()
	r := newRig(t, options...)
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	listener := httptest.NewUnstartedServer(r)
	listener.Config.Protocols = protocols
	listener.Start()
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(func() {
		r.Close()
		transport.CloseIdleConnections()
		listener.Close()
	})
	r.url, r.web = listener.URL, &http.Client{Transport: transport}
	return r
}

func newRig(t testing.TB, options ...watchcache.Option) *rig {
	t.Helper()
	s, err := apiserver.NewServer(options...)
	require.NoError(t, err)
	r := &rig{
		Server:     s,
		pods:       apiserver.Serve(s, builtin.Pods()),
		configMaps: apiserver.Serve(s, builtin.Of[*corev1.ConfigMap]()),
		web:        http.DefaultClient,
	}
	r.handler = s
	listener := httptest.NewServer(r)
	t.Cleanup(func() {
		s.Close()
		listener.Close()
	})
	r.url = listener.URL
	return r
}

// ServeHTTP implements [http.Handler].
func (r *rig) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.handler.ServeHTTP(w, request)
}

// overBothProtocols runs a test over HTTP/1.1 and over HTTP/2.
func overBothProtocols(t *testing.T, test func(t *testing.T, newRig func(testing.TB, ...watchcache.Option) *rig)) {
	t.Helper()
	t.Run("HTTP/1.1", func(t *testing.T) { test(t, newRig) })
	t.Run("HTTP/2", func(t *testing.T) { test(t, newHTTP2Rig) })
}

// listen puts a server behind a listener until the test ends, and returns its URL.
func listen(t testing.TB, s *apiserver.Server) string {
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
	config := &rest.Config{Host: r.url, QPS: -1, Transport: r.web.Transport}
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

var (
	pod      = cachetest.Pod
	onNode   = cachetest.OnNode
	labelled = cachetest.Labelled

	inNamespace = cachetest.InNamespace
)

func (r *rig) create(t testing.TB, pods ...*corev1.Pod) (last *corev1.Pod) {
	t.Helper()
	for _, p := range pods {
		created, err := r.pods.Create(p)
		require.NoError(t, err)
		last = created
	}
	return last
}

// newCache is a copy of pods, to be filled.
func newCache(t testing.TB) *watchcache.Cache[*corev1.Pod] {
	t.Helper()
	c, err := watchcache.NewCache(watchcache.Pods())
	require.NoError(t, err)
	return c
}

// listed is a list in short: "a@2".
func listed(list corev1.PodList) []string {
	names := []string{}
	for _, p := range list.Items {
		names = append(names, p.Name+"@"+p.ResourceVersion)
	}
	return names
}

// relabel updates a pod.
func (r *rig) relabel(t testing.TB, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	p = p.DeepCopy()
	p.Labels = map[string]string{"after": p.ResourceVersion}
	p, err := r.pods.Update(p)
	require.NoError(t, err)
	return p
}
