package relay_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/relay"
)

// TestAHundredFirstReadersShareOneStart: readers that come at once, and those that come later, cost
// the upstream one list and one watch.
func TestAHundredFirstReadersShareOneStart(t *testing.T) {
	g := newRig(t)
	g.upstream.inhabited(t)
	client := clientset(t, g.config()).CoreV1().Pods("")
	for range 2 {
		var readers sync.WaitGroup
		for i := range 100 {
			readers.Go(func() {
				if i%2 == 0 {
					list, err := client.List(t.Context(), metav1.ListOptions{})
					if err != nil || len(list.Items) != 12 {
						t.Errorf("%v: %v", list, err)
					}
					return
				}
				watcher, err := client.Watch(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				defer watcher.Stop()
				if e := <-watcher.ResultChan(); e.Type != watch.Added {
					t.Error(e)
				}
			})
		}
		readers.Wait()
	}
	require.LessOrEqual(t, g.upstream.ofRelay("pods", false), 1)
	require.Equal(t, 1, g.upstream.ofRelay("pods", true))
	require.Len(t, g.upstream.asked(func(r request) bool { return r.path == "/api/v1" }), 1)
	require.Empty(t, g.upstream.asked(func(r request) bool { return r.token == clientToken }))
}

// blocked has an upstream hold lists and watches of a resource, until they are let go.
func (u *upstream) blocked(resource string) (began <-chan struct{}, letGo func()) {
	began1, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	u.answers(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/"+resource) && r.Method == http.MethodGet {
			once.Do(func() { close(began1) })
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		return false
	})
	return began1, sync.OnceFunc(func() { close(release) })
}

// TestAFirstReaderMayLeave: the copy goes on to be filled, for the second reader.
func TestAFirstReaderMayLeave(t *testing.T) {
	g := newRig(t)
	g.upstream.inhabited(t)
	began, letGo := g.upstream.blocked("pods")
	defer letGo()
	client := clientset(t, g.config()).CoreV1().Pods("")
	ctx, leave := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := client.List(ctx, metav1.ListOptions{})
		first <- err
	}()
	<-began
	leave()
	require.Error(t, <-first)
	second := make(chan error, 1)
	go func() {
		_, err := client.List(t.Context(), metav1.ListOptions{})
		second <- err
	}()
	letGo()
	require.NoError(t, <-second)
	require.Equal(t, 1, g.upstream.ofRelay("pods", true))
}

// TestACopyEndsAfterItsLastReader: a watch keeps the copy, on whatever connection; then it lingers,
// and the next reader starts another one.
func TestACopyEndsAfterItsLastReader(t *testing.T) {
	g := newRig(t, relay.WithLinger(time.Second))
	g.upstream.inhabited(t)
	client := clientset(t, g.config()).CoreV1().Pods("")
	watcher, err := client.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	<-watcher.ResultChan()
	opened := time.Now()
	// Another kind without readers ends meanwhile; the pods stay.
	_, err = clientset(t, g.config()).CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"pods", "configmaps"}, g.copies())
	require.Eventually(t, func() bool { return len(g.copies()) == 1 }, time.Minute, 10*time.Millisecond)
	require.Greater(t, time.Since(opened), time.Second)
	require.Equal(t, []string{"pods"}, g.copies())
	require.Equal(t, 1, g.upstream.ofRelay("pods", true))
	watcher.Stop()
	require.Eventually(t, func() bool { return len(g.copies()) == 0 }, time.Minute, 10*time.Millisecond)

	_, err = client.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"pods"}, g.copies())
	require.Equal(t, 2, g.upstream.ofRelay("pods", true))
}

// TestAReadOfOneObjectStartsNoCopy of all others: it is passed on, by name or by a selector for the
// name, until a list or a scope has started the copy.
func TestAReadOfOneObjectStartsNoCopy(t *testing.T) {
	g := newRig(t)
	g.upstream.createPods(t, pod("ns", "a", "node"))
	client := clientset(t, g.config()).CoreV1().Pods("ns")
	readOne := func() {
		_, err := client.Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		list, err := client.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a"})
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
	}
	passed := func() int { return len(g.upstream.asked(func(r request) bool { return r.token == clientToken })) }
	readOne()
	require.Equal(t, 2, passed())
	require.Empty(t, g.copies())
	_, err := client.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	readOne()
	require.Equal(t, 2, passed())

	scoped := newRigBefore(t, newUpstream(t), relay.Only(relay.Scope{Resource: schema.GroupResource{Resource: "pods"}}))
	_, err = clientset(t, scoped.config()).CoreV1().Pods("ns").Get(t.Context(), "none", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), err)
	require.Equal(t, []string{"pods"}, scoped.copies())
}

// TestDefinitionsComeAndGo: a kind is served from its definition on. When it goes, its watches end,
// and the upstream says that it is not there.
func TestDefinitionsComeAndGo(t *testing.T) {
	g := newRig(t)
	_, err := g.upstream.widgets.Create(widget("ns", "a"))
	require.NoError(t, err)
	g.upstream.Remove(widgetResource)
	client, err := dynamic.NewForConfig(g.config())
	require.NoError(t, err)
	widgets := client.Resource(widgetResource)
	for range 2 {
		_, err = widgets.List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.Empty(t, g.copies())

		made := apiserver.Serve(g.upstream.Server, widgetKind())
		_, err = made.Create(widget("ns", "a"))
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			list, err := widgets.List(t.Context(), metav1.ListOptions{})
			return err == nil && len(list.Items) == 1 && len(g.copies()) == 1
		}, time.Minute, 10*time.Millisecond)
		watcher, err := widgets.Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, watch.Added, (<-watcher.ResultChan()).Type)
		g.upstream.Remove(widgetResource)
		_, open := <-watcher.ResultChan()
		require.False(t, open)
		require.Eventually(t, func() bool { return len(g.copies()) == 0 }, time.Minute, 10*time.Millisecond)
	}
}

// TestAKindThatDiscoveryStillHas: the upstream has stopped serving a kind, and its discovery does
// not say so yet. Readers get its 404, and not a failure to prove the copy.
func TestAKindThatDiscoveryStillHas(t *testing.T) {
	g := newRig(t)
	_, err := g.upstream.widgets.Create(widget("ns", "a"))
	require.NoError(t, err)
	const version, widgets = "/apis/example.com/v1", "/apis/example.com/v1/widgets"
	require.Equal(t, http.StatusOK, get(t, g.url+widgets).code)
	known := get(t, "http://"+g.upstream.address+version).body
	g.upstream.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != version {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, known)
		return true
	})
	g.upstream.Remove(widgetResource)
	require.Eventually(t, func() bool { return get(t, g.url+widgets).code == http.StatusNotFound }, time.Minute, 10*time.Millisecond)
}

// TestScopes: reads that the scope covers come out of its copy, all others from the upstream.
func TestScopes(t *testing.T) {
	selector, err := labels.Parse("app in (app-1,app-2)")
	require.NoError(t, err)
	g := newRig(t, relay.Only(
		relay.Scope{Resource: schema.GroupResource{Resource: "pods"}, Fields: fields.ParseSelectorOrDie("spec.nodeName=node-1")},
		relay.Scope{Resource: schema.GroupResource{Resource: "configmaps"}, Namespace: "ns", Labels: selector},
	))
	g.upstream.inhabited(t)
	for _, c := range []struct {
		path   string
		copied bool
		count  int
	}{
		{"/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1", true, 4},
		{"/api/v1/pods?fieldSelector=spec.nodeName%3D%3Dnode-1", true, 4},
		{"/api/v1/namespaces/ns/pods?fieldSelector=spec.nodeName%3Dnode-1,metadata.name%3Dpod-4", true, 1},
		{"/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-2", false, 4},
		{"/api/v1/pods?fieldSelector=spec.nodeName%21%3Dnode-1", false, 8},
		{"/api/v1/pods", false, 12},
		{"/api/v1/namespaces/ns/pods/pod-1", false, 0},
		{"/api/v1/namespaces/ns/configmaps?labelSelector=app+in+(app-2,app-1)", true, 2},
		{"/api/v1/namespaces/ns/configmaps?labelSelector=app%3Dapp-1", false, 1},
		{"/api/v1/configmaps?labelSelector=app+in+(app-1,app-2)", false, 2},
		{"/api/v1/namespaces", false, 6},
	} {
		before := g.admitted.Load()
		passed := len(g.upstream.asked(func(r request) bool { return r.token == clientToken }))
		answer := get(t, g.url+c.path)
		require.Len(t, names(t, answer.body), c.count, "%s: %s", c.path, answer.body)
		require.Equal(t, c.copied, g.admitted.Load() > before, c.path)
		require.Equal(t, c.copied, passed == len(g.upstream.asked(func(r request) bool { return r.token == clientToken })), c.path)
	}
	for _, r := range g.upstream.asked(func(r request) bool { return r.token == relayToken && strings.HasSuffix(r.path, "/pods") }) {
		require.Contains(t, r.query, "fieldSelector=spec.nodeName%3Dnode-1")
	}
	for _, r := range g.upstream.asked(func(r request) bool { return r.token == relayToken && strings.HasSuffix(r.path, "/configmaps") }) {
		require.Equal(t, "/api/v1/namespaces/ns/configmaps", r.path)
	}
	_, err = relay.New(g.upstream.config(""), relay.Open, relay.Only(relay.Scope{}))
	require.ErrorContains(t, err, "names no resource")
	pods := relay.Scope{Resource: schema.GroupResource{Resource: "pods"}}
	_, err = relay.New(g.upstream.config(""), relay.Open, relay.Only(pods, pods))
	require.ErrorContains(t, err, "two scopes of pods")
}

// TestAKindThatTheRelayMayNotRead: its readers get what the upstream lets them read.
func TestAKindThatTheRelayMayNotRead(t *testing.T) {
	g := newRig(t)
	g.upstream.inhabited(t)
	g.upstream.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/pods" || r.Header.Get("Authorization") != "Bearer "+relayToken {
			return false
		}
		http.Error(w, "no", http.StatusForbidden)
		return true
	})
	client := clientset(t, g.config()).CoreV1()
	for range 3 {
		list, err := client.Pods("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, 12)
	}
	require.Empty(t, g.copies())
	require.LessOrEqual(t, g.upstream.ofRelay("pods", true)+g.upstream.ofRelay("pods", false), 2, "it is not tried for each reader")
	watcher, err := client.Pods("").Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.IsType(t, &corev1.Pod{}, (<-watcher.ResultChan()).Object)
	watcher.Stop()
}

// TestAKindThatCannotBeCopied: an API server whose resource versions are no numbers answers itself.
func TestAKindThatCannotBeCopied(t *testing.T) {
	g := newRig(t)
	_, err := g.upstream.widgets.Create(widget("ns", "a"))
	require.NoError(t, err)
	g.upstream.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/widgets") {
			return false
		}
		if r.URL.Query().Get("watch") != "" {
			http.Error(w, "no watch lists", http.StatusBadRequest)
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"12/34"},"items":[` +
			`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"1/2"}}]}`))
		return true
	})
	for range 3 {
		answer := get(t, g.url+"/apis/example.com/v1/widgets")
		require.Equal(t, []string{"ns/a"}, names(t, answer.body))
		require.Contains(t, answer.body, "12/34")
	}
	require.Empty(t, g.copies())
}

// TestADefinitionReturnsWithAnotherScope: the copy of the former one ends, so that its paths are
// gone, as at the upstream.
func TestADefinitionReturnsWithAnotherScope(t *testing.T) {
	g := newRig(t)
	_, err := g.upstream.widgets.Create(widget("ns", "a"))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, get(t, g.url+widgetsPath).code)
	next := widgetKind()
	next.Kind.ClusterScoped = true
	g.upstream.Remove(widgetResource)
	apiserver.Serve(g.upstream.Server, next)
	require.Eventually(t, func() bool {
		return get(t, g.url+widgetsPath).code == http.StatusNotFound && get(t, g.url+"/apis/example.com/v1/widgets").code == http.StatusOK
	}, time.Minute, 10*time.Millisecond)
}
