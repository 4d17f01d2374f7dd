package prom_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/prom"
)

// anInformer is an informer in a given state.
type anInformer struct{ informer.Status }

var names = []string{
	"tributary_informer_objects", "tributary_informer_drift_objects", "tributary_informer_handlers", "tributary_informer_handler_synced",
	"tributary_informer_handler_lag_events", "tributary_informer_handler_lag_seconds", "tributary_informer_handler_events_total",
	"tributary_informer_handler_differences_total", "tributary_informer_handlers_failed",
}

func newMetrics(t *testing.T) (*prometheus.Registry, *prom.Metrics) {
	registry := prometheus.NewPedanticRegistry()
	metrics, err := prom.New(registry)
	require.NoError(t, err)
	_, err = prom.New(registry)
	require.ErrorContains(t, err, "register once per process")
	return registry, metrics
}

func count(t *testing.T, registry *prometheus.Registry) int {
	n, err := testutil.GatherAndCount(registry)
	require.NoError(t, err)
	return n
}

// TestHandlersOfOneNameAreOneSeries also holds for all that have none.
func TestHandlersOfOneNameAreOneSeries(t *testing.T) {
	registry, metrics := newMetrics(t)
	i := &anInformer{informer.Status{Objects: 7, Drift: informer.Drift{At: time.Now(), Count: 2}, Handlers: []informer.HandlerStatus{
		{Name: "mine", Synced: true, Lag: informer.Lag{Events: 5, Age: 1500 * time.Millisecond}, Delivered: 3, Differences: 1},
		{Name: "handler-1", Unnamed: true, Synced: true, Lag: informer.Lag{Events: 1, Age: time.Minute}, Delivered: 1},
		{Name: "handler-9", Unnamed: true, Lag: informer.Lag{Events: 4}, Delivered: 2, Err: errors.New("panicked")},
	}}}
	forget := metrics.Track("pods", i)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
		# HELP tributary_informer_drift_objects Objects that differ from the server's, as the last verification found; 0 once a relist has healed them.
		# TYPE tributary_informer_drift_objects gauge
		tributary_informer_drift_objects{informer="pods"} 2
		# HELP tributary_informer_handler_differences_total How often the handler fell behind the ring and was told a difference.
		# TYPE tributary_informer_handler_differences_total counter
		tributary_informer_handler_differences_total{handler="mine",informer="pods"} 1
		tributary_informer_handler_differences_total{handler="unnamed",informer="pods"} 0
		# HELP tributary_informer_handler_events_total Events told, in whole batches.
		# TYPE tributary_informer_handler_events_total counter
		tributary_informer_handler_events_total{handler="mine",informer="pods"} 3
		tributary_informer_handler_events_total{handler="unnamed",informer="pods"} 3
		# HELP tributary_informer_handler_lag_events Changes, and objects of its initial list, that the handler has not returned from yet.
		# TYPE tributary_informer_handler_lag_events gauge
		tributary_informer_handler_lag_events{handler="mine",informer="pods"} 5
		tributary_informer_handler_lag_events{handler="unnamed",informer="pods"} 4
		# HELP tributary_informer_handler_lag_seconds How long the oldest of these has waited; until the handler is synced, since its initial list began.
		# TYPE tributary_informer_handler_lag_seconds gauge
		tributary_informer_handler_lag_seconds{handler="mine",informer="pods"} 1.5
		tributary_informer_handler_lag_seconds{handler="unnamed",informer="pods"} 60
		# HELP tributary_informer_handler_synced 1 once the handlers have returned from their initial lists.
		# TYPE tributary_informer_handler_synced gauge
		tributary_informer_handler_synced{handler="mine",informer="pods"} 1
		tributary_informer_handler_synced{handler="unnamed",informer="pods"} 0
		# HELP tributary_informer_handlers Handlers of this name.
		# TYPE tributary_informer_handlers gauge
		tributary_informer_handlers{handler="mine",informer="pods"} 1
		tributary_informer_handlers{handler="unnamed",informer="pods"} 2
		# HELP tributary_informer_handlers_failed Handlers that have ended with a panic.
		# TYPE tributary_informer_handlers_failed gauge
		tributary_informer_handlers_failed{handler="mine",informer="pods"} 0
		tributary_informer_handlers_failed{handler="unnamed",informer="pods"} 1
		# HELP tributary_informer_objects Objects held.
		# TYPE tributary_informer_objects gauge
		tributary_informer_objects{informer="pods"} 7
	`), names...))

	other := &anInformer{}
	metrics.Track("pods", other)
	forget()
	require.Positive(t, count(t, registry), "the name has another owner by now")
	metrics.Track("pods", other)()
	require.Zero(t, count(t, registry))
}

// TestAHandlerThatHangsShows, with a real informer and a set, and leaves no series behind.
func TestAHandlerThatHangsShows(t *testing.T) {
	registry, metrics := newMetrics(t)
	pods := listwatchtest.New(t, listwatchtest.Pods())
	create := func(name string) *corev1.Pod {
		return pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
	}
	i := informer.New(pods.ListerWatcher(), informer.WithReflector(metrics.Option("pods")))
	set := informer.NewSet(pods.Server().Config(), informer.WithReflector(metrics.Option("set")))
	forget, forgetSet := metrics.Track("pods", i), metrics.Track("set", set)
	began, goOn := make(chan struct{}, 2), make(chan struct{})
	slow, err := i.AddHandler(func(informer.Event[*corev1.Pod]) { began <- struct{}{}; <-goOn }, informer.WithName("slow"))
	require.NoError(t, err)
	lease, err := informer.Acquire[corev1.Pod](set, corev1.SchemeGroupVersion.WithResource("pods"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- i.Run(ctx) }()
	go func() { ended <- set.Run(ctx) }()
	// Else its initial list might have the first pod already.
	require.NoError(t, slow.WaitSynced(t.Context()))
	require.NoError(t, lease.WaitSynced(t.Context()))

	create("a")
	<-began
	b := create("b")
	require.NoError(t, i.WaitFor(t.Context(), b))
	require.NoError(t, lease.WaitFor(t.Context(), b))
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
		# HELP tributary_informer_handler_lag_events Changes, and objects of its initial list, that the handler has not returned from yet.
		# TYPE tributary_informer_handler_lag_events gauge
		tributary_informer_handler_lag_events{handler="slow",informer="pods"} 2
		# HELP tributary_informer_objects Objects held.
		# TYPE tributary_informer_objects gauge
		tributary_informer_objects{informer="pods"} 2
		tributary_informer_objects{informer="pods/v1 as *v1.Pod"} 2
		# HELP tributary_reflector_synced 1 once the store has held a whole state of the server.
		# TYPE tributary_reflector_synced gauge
		tributary_reflector_synced{reflector="pods"} 1
		tributary_reflector_synced{reflector="pods/v1 as *v1.Pod"} 1
	`), "tributary_informer_handler_lag_events", "tributary_informer_objects", "tributary_reflector_synced"))
	lease.Close()
	for _, name := range []string{"tributary_informer_objects", "tributary_reflector_synced"} {
		n, err := testutil.GatherAndCount(registry, name)
		require.NoError(t, err)
		require.Equal(t, 1, n, "a copy that nobody leases has no series")
	}

	cancel()
	close(goOn)
	for range cap(ended) {
		require.NoError(t, <-ended)
	}
	forget()
	forgetSet()
	require.Zero(t, count(t, registry))
}

// TestSetsWithCopiesOfOneName show one of them: two series of one name would cost the whole scrape.
func TestSetsWithCopiesOfOneName(t *testing.T) {
	registry, metrics := newMetrics(t)
	config := listwatchtest.New(t, listwatchtest.Pods()).Server().Config()
	for _, name := range []string{"one", "two"} {
		set := informer.NewSet(config)
		t.Cleanup(metrics.Track(name, set))
		lease, err := informer.Acquire[corev1.Pod](set, corev1.SchemeGroupVersion.WithResource("pods"))
		require.NoError(t, err)
		t.Cleanup(lease.Close)
	}
	for _, name := range []string{"tributary_informer_objects", "tributary_reflector_synced"} {
		n, err := testutil.GatherAndCount(registry, name)
		require.NoError(t, err)
		require.Equal(t, 1, n, name)
	}
}
