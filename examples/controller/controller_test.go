package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/controller/leader"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// world is a fake cluster.
type world struct {
	pods   *listwatchtest.Collection[*corev1.Pod]
	nodes  *listwatchtest.Collection[*corev1.Node]
	leases *listwatchtest.Collection[*coordinationv1.Lease]
}

func newWorld(t *testing.T) world {
	w := world{pods: listwatchtest.New(t, listwatchtest.Pods())}
	w.nodes = listwatchtest.Serve(w.pods.Server(), listwatchtest.Of[*corev1.Node]())
	w.leases = listwatchtest.Serve(w.pods.Server(), listwatchtest.Of[*coordinationv1.Lease]())
	return w
}

func (w world) controller(t *testing.T) (*program, *prometheus.Registry) {
	client, err := kubernetes.NewForConfig(w.pods.Server().Config())
	require.NoError(t, err)
	registry := prometheus.NewPedanticRegistry()
	c, err := newProgram(client, registry, io.Discard)
	require.NoError(t, err)
	return c, registry
}

// run keeps a controller's copies and calls lead, which works, until the test ends or stop is
// called.
func (w world) run(t *testing.T, c *program, lead func(stop context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	copies, stopCopies := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- c.pods.Run(copies) }()
	go func() { ended <- c.nodes.Run(copies) }()
	worked := make(chan struct{})
	go func() { defer close(worked); lead(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		<-worked
		stopCopies()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
		c.forget()
	}
	t.Cleanup(stop)
	return stop
}

func (w world) join(name string) *corev1.Node {
	return w.nodes.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "a"}}})
}

func (w world) bind(name, node string) *corev1.Pod {
	return w.pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: node}})
}

// requireLabels waits until nothing is left to do, and compares.
func (w world) requireLabels(t *testing.T, want map[string]string) {
	t.Helper()
	time.Sleep(10 * time.Second) // of the bubble's: what failed is tried again
	synctest.Wait()
	got := map[string]string{}
	for name, node := range w.nodes.Origin().Snapshot().All() {
		got[name] = node.Labels[label]
	}
	require.Equal(t, want, got)
}

func (w world) applies() int { return len(w.pods.Server().Requests(listwatchtest.Patch)) }

func working(c *program) func(context.Context) {
	return func(stop context.Context) { _ = c.work(context.WithoutCancel(stop), stop) }
}

func TestReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.join("n1")
		w.join("n2")
		a := w.bind("a", "n1")
		w.bind("b", "n1")
		w.bind("pending", "")
		c, _ := w.controller(t)
		w.run(t, c, working(c))
		w.requireLabels(t, map[string]string{"n1": "2", "n2": "0"})
		require.Equal(t, 2, w.applies(), "one for each node")

		w.pods.Remove(a)
		w.bind("a", "n2")
		w.requireLabels(t, map[string]string{"n1": "1", "n2": "1"})
		ended := w.bind("c", "n2").DeepCopy()
		ended.Status.Phase = corev1.PodFailed
		w.pods.UpdateStatus(ended)
		w.requireLabels(t, map[string]string{"n1": "1", "n2": "1"})

		// Whatever else is on the node stays, and an intruder is corrected.
		node, err := w.nodes.Origin().Get("", "n1")
		require.NoError(t, err)
		require.Equal(t, "a", node.Labels["zone"])
		node = node.DeepCopy()
		node.Labels[label] = "99"
		w.nodes.Update(node)
		w.requireLabels(t, map[string]string{"n1": "1", "n2": "1"})
	})
}

// TestOwnWritesAreRead: a copy that lags must not make the controller write twice, or write what
// was right before.
func TestOwnWritesAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.join("n1")
		c, _ := w.controller(t)
		w.run(t, c, working(c))
		w.requireLabels(t, map[string]string{"n1": "0"})
		w.nodes.Delay(5*time.Second, listwatchtest.On(listwatchtest.Watch))
		w.bind("a", "n1")
		time.Sleep(time.Second)
		require.Equal(t, 2, w.applies())
		c.loop.Add("n1") // looked at again before the write has come back
		time.Sleep(time.Second)
		require.Equal(t, 2, w.applies())
		w.requireLabels(t, map[string]string{"n1": "1"})
		require.Equal(t, 2, w.applies())
	})
}

// TestANodeThatIsGoneIsNotMadeAnew: an apply would create it.
func TestANodeThatIsGoneIsNotMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		node := w.join("n1")
		c, _ := w.controller(t)
		w.run(t, c, working(c))
		w.requireLabels(t, map[string]string{"n1": "0"})
		w.nodes.Delay(5*time.Second, listwatchtest.On(listwatchtest.Watch))
		w.nodes.Remove(node)
		w.bind("a", "n1")
		w.requireLabels(t, map[string]string{})
		require.Greater(t, w.applies(), 1, "it was tried")
	})
}

func TestFailuresAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.nodes.Fail(listwatchtest.Patch, apierrors.NewInternalError(context.DeadlineExceeded), listwatchtest.Times(3))
		w.join("n1")
		w.bind("a", "n1")
		c, registry := w.controller(t)
		w.run(t, c, working(c))
		w.requireLabels(t, map[string]string{"n1": "1"})
		metrics := get(t, handler(c, registry), "/metrics")
		require.Contains(t, metrics, `tributary_controller_calls_total{controller="pods-per-node",result="failed"} 3`)
		require.Contains(t, metrics, "controller_applies_total 1")
		require.Contains(t, metrics, `tributary_controller_working{controller="pods-per-node"} 1`)
		require.Contains(t, metrics, `tributary_reflector_synced{reflector="nodes"} 1`)
	})
}

// TestReadiness follows the copies.
func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		down := w.nodes.Fail(listwatchtest.Watch, apierrors.NewServiceUnavailable("not now"), listwatchtest.UntilLifted())
		noList := w.nodes.Fail(listwatchtest.List, apierrors.NewServiceUnavailable("not now"), listwatchtest.UntilLifted())
		c, registry := w.controller(t)
		w.run(t, c, working(c))
		synctest.Wait()
		require.Contains(t, get(t, handler(c, registry), "/readyz"), "copy 2: not synced yet")
		require.Regexp(t, `(?m)^failing   nodes +informer`, get(t, handler(c, registry), "/statusz"))
		down.Lift()
		noList.Lift()
		time.Sleep(time.Minute)
		require.Equal(t, "ok\n", get(t, handler(c, registry), "/readyz"))
	})
}

func get(t *testing.T, answers http.Handler, path string) string {
	recorder := httptest.NewRecorder()
	answers.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	return recorder.Body.String()
}

// TestReplicas: one works at a time; the other takes over at once from one that stops. One that
// cannot renew its lease stops.
func TestReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.join("n1")
		first, _ := w.controller(t)
		second, _ := w.controller(t)
		lead := func(c *program, identity string, ended chan<- error) func(context.Context) {
			e := leader.Election{Client: c.client.CoordinationV1(), Namespace: "ns", Name: "lease", Identity: identity}
			return func(stop context.Context) {
				ended <- e.Run(logr.NewContext(stop, logr.Discard()), c.work)
			}
		}
		firstEnded, secondEnded := make(chan error, 1), make(chan error, 1)
		stopFirst := w.run(t, first, lead(first, "first", firstEnded))
		w.requireLabels(t, map[string]string{"n1": "0"})
		w.run(t, second, lead(second, "second", secondEnded))
		w.bind("a", "n1")
		w.requireLabels(t, map[string]string{"n1": "1"})
		require.Equal(t, 2, w.applies(), "the second one only looks on")

		stopFirst()
		require.NoError(t, <-firstEnded)
		w.bind("b", "n1")
		w.requireLabels(t, map[string]string{"n1": "2"})
		require.Equal(t, 3, w.applies())

		// The second one cannot renew: it stops by itself, before another one may lead.
		w.leases.Fail(listwatchtest.Update, apierrors.NewInternalError(context.DeadlineExceeded), listwatchtest.UntilLifted())
		time.Sleep(12 * time.Second)
		require.ErrorIs(t, <-secondEnded, leader.ErrLost)
		w.bind("c", "n1")
		w.requireLabels(t, map[string]string{"n1": "2"})
	})
}
