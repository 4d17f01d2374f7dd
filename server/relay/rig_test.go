package relay_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/relay"
	"github.com/tributary-go/tributary/server/watchcache"
)

const (
	relayToken  = "the-relays-own"
	clientToken = "a-clients"
)

// upstream is an API server of all built-in kinds, and of widgets, behind a real listener. It asks
// for no token, and notes those that it gets.
type upstream struct {
	*apiserver.Server
	pods    *collection.Collection[*corev1.Pod]
	widgets *collection.Collection[*unstructured.Unstructured]
	address string

	mu       sync.Mutex
	web      *http.Server
	requests []request
	answer   func(w http.ResponseWriter, r *http.Request) bool // first; true: it has answered
}

// request is what an upstream was asked.
type request struct {
	method, path, query, token string
	header                     http.Header
	host                       string
}

func (r request) isWatch() bool { return strings.Contains(r.query, "watch=") }

var widgetResource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func widgetKind() apiserver.Resource[*unstructured.Unstructured] {
	return apiserver.Resource[*unstructured.Unstructured]{Kind: watchcache.Kind[*unstructured.Unstructured]{
		Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget",
	}}
}

func newUpstream(t testing.TB, options ...watchcache.Option) *upstream {
	t.Helper()
	s, err := apiserver.NewServer(options...)
	require.NoError(t, err)
	u := &upstream{Server: s, pods: apiserver.Serve(s, builtin.Pods()), widgets: apiserver.Serve(s, widgetKind())}
	builtin.Serve(s)
	for _, name := range []string{"ns", "other"} {
		u.create(t, "namespaces", "", fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	}
	u.up(t)
	t.Cleanup(func() {
		s.Close()
		u.down()
		require.NoError(t, s.Shutdown(context.WithoutCancel(t.Context())))
	})
	return u
}

// create writes an object from within.
func (u *upstream) create(t testing.TB, resource, namespace, body string) {
	t.Helper()
	path := "/api/v1/" + resource
	if namespace != "" {
		path = "/api/v1/namespaces/" + namespace + "/" + resource
	}
	u.send(t, http.MethodPost, path, body)
}

// send is a request from within, which must succeed.
func (u *upstream) send(t testing.TB, method, path, body string) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	u.Server.ServeHTTP(w, r)
	require.Less(t, w.Code, http.StatusMultipleChoices, w.Body)
}

// up has it listen, on its address of before.
func (u *upstream) up(t testing.TB) {
	t.Helper()
	address := u.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	u.address = listener.Addr().String()
	web := &http.Server{Handler: u}
	u.mu.Lock()
	u.web = web
	u.mu.Unlock()
	go func() { _ = web.Serve(listener) }() // until down
}

// down has its connections cut, and new ones refused.
func (u *upstream) down() { _ = u.web.Close() }

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	u.requests = append(u.requests, request{
		method: r.Method, path: r.URL.Path, query: r.URL.RawQuery, header: r.Header.Clone(), host: r.Host,
		token: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "),
	})
	answer := u.answer
	u.mu.Unlock()
	if answer == nil || !answer(w, r) {
		u.Server.ServeHTTP(w, r)
	}
}

// answers has a function answer first; it returns true if it has.
func (u *upstream) answers(f func(w http.ResponseWriter, r *http.Request) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer = f
}

// asked are the requests that a function keeps.
func (u *upstream) asked(keep func(request) bool) []request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(u.requests), func(r request) bool { return !keep(r) })
}

func (u *upstream) config(token string) *rest.Config {
	return &rest.Config{Host: "http://" + u.address, BearerToken: token, QPS: -1}
}

// rig is a relay before an upstream, both behind real listeners.
type rig struct {
	*relay.Relay
	upstream *upstream
	url      string
	admitted atomic.Int64 // reads that the access control has let in
}

func newRig(t testing.TB, options ...relay.Option) *rig {
	t.Helper()
	return newRigBefore(t, newUpstream(t), options...)
}

func newRigBefore(t testing.TB, u *upstream, options ...relay.Option) *rig {
	t.Helper()
	g := &rig{upstream: u}
	access := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			g.admitted.Add(1)
			next.ServeHTTP(w, r)
		})
	}
	g.listen(t, u.config(relayToken), access, options)
	return g
}

// listen makes the relay, and serves it until the test ends.
func (g *rig) listen(t testing.TB, config *rest.Config, access func(http.Handler) http.Handler, options []relay.Option) {
	t.Helper()
	var err error
	g.Relay, err = relay.New(config, access,
		append([]relay.Option{relay.WithTypesOf(99), relay.WithLogger(logr.Discard())}, options...)...)
	require.NoError(t, err)
	listener := httptest.NewServer(g.Relay)
	g.url = listener.URL
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		require.NoError(t, g.Shutdown(ctx))
		listener.Close()
		http.DefaultClient.CloseIdleConnections()
	})
}

func (g *rig) config() *rest.Config {
	return &rest.Config{Host: g.url, BearerToken: clientToken, QPS: -1}
}

func clientset(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// response is an answer over HTTP.
type response struct {
	code   int
	header http.Header
	body   string
}

// get asks for a path, with headers in pairs.
func get(t testing.TB, url string, headers ...string) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+clientToken)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return response{answer.StatusCode, answer.Header, string(body)}
}

func pod(namespace, name, node string, labels ...string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
	for i := 0; i+1 < len(labels); i += 2 {
		p.Labels[labels[i]] = labels[i+1]
	}
	return p
}

func (u *upstream) createPods(t testing.TB, pods ...*corev1.Pod) (last *corev1.Pod) {
	t.Helper()
	for _, p := range pods {
		created, err := u.pods.Create(p)
		require.NoError(t, err)
		last = created
	}
	return last
}

func widget(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{"size": int64(3)},
	}}
}

// ofRelay are the lists, or the watches, of a resource under the relay's own credential, but for
// questions of one object.
func (u *upstream) ofRelay(resource string, watches bool) int {
	return len(u.asked(func(r request) bool {
		return r.token == relayToken && strings.HasSuffix(r.path, "/"+resource) && r.isWatch() == watches &&
			!strings.Contains(r.header.Get("Accept"), "PartialObjectMetadata")
	}))
}

// copies are the kinds that are copied now.
func (g *rig) copies() (names []string) {
	for _, h := range g.Server().Health() {
		names = append(names, h.Resource.GroupResource().String())
	}
	return names
}
