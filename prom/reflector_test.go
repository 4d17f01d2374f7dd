package prom_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/prom"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// tracked is a reflector in a given state.
type tracked struct{ reflector.Status }

func TestStatusIsReadAtEachScrape(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics, err := prom.New(registry)
	require.NoError(t, err)
	r := &tracked{}
	forget := metrics.Track("pods", r)
	names := []string{
		"tributary_reflector_synced", "tributary_reflector_failing", "tributary_reflector_skipped_objects_total",
		"tributary_reflector_last_contact_timestamp_seconds", "tributary_reflector_last_event_timestamp_seconds",
		"tributary_reflector_last_progress_timestamp_seconds", "tributary_reflector_events_total",
		"tributary_reflector_not_right", "tributary_reflector_proven_timestamp_seconds", "tributary_reflector_retry_timestamp_seconds",
	}
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
		# HELP tributary_reflector_events_total Events received.
		# TYPE tributary_reflector_events_total counter
		tributary_reflector_events_total{reflector="pods"} 0
		# HELP tributary_reflector_not_right 1 while the copy is not right, whatever the age of its proof; the class says why.
		# TYPE tributary_reflector_not_right gauge
		tributary_reflector_not_right{class="not_synced",reflector="pods"} 1
		# HELP tributary_reflector_skipped_objects_total Objects and events that could not be decoded or stored.
		# TYPE tributary_reflector_skipped_objects_total counter
		tributary_reflector_skipped_objects_total{reflector="pods"} 0
		# HELP tributary_reflector_synced 1 once the store has held a whole state of the server.
		# TYPE tributary_reflector_synced gauge
		tributary_reflector_synced{reflector="pods"} 0
	`), names...))

	r.Status = reflector.Status{
		Phase: reflector.Watching, Synced: true, Err: errors.New("no"), Class: reflector.Forbidden, Skipped: 2, Events: 7,
		ProvenAt: time.UnixMilli(1125), RetryAt: time.UnixMilli(1625), LastContact: time.UnixMilli(1500),
		LastEvent: time.UnixMilli(1250), LastProgress: time.UnixMilli(1375),
	}
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
		# HELP tributary_reflector_events_total Events received.
		# TYPE tributary_reflector_events_total counter
		tributary_reflector_events_total{reflector="pods"} 7
		# HELP tributary_reflector_failing 1 while something is wrong; the class says what.
		# TYPE tributary_reflector_failing gauge
		tributary_reflector_failing{class="forbidden",reflector="pods"} 1
		# HELP tributary_reflector_last_contact_timestamp_seconds When the server was last heard.
		# TYPE tributary_reflector_last_contact_timestamp_seconds gauge
		tributary_reflector_last_contact_timestamp_seconds{reflector="pods"} 1.5
		# HELP tributary_reflector_last_event_timestamp_seconds When the last object or event came, bookmarks apart.
		# TYPE tributary_reflector_last_event_timestamp_seconds gauge
		tributary_reflector_last_event_timestamp_seconds{reflector="pods"} 1.25
		# HELP tributary_reflector_last_progress_timestamp_seconds When the resource version last moved.
		# TYPE tributary_reflector_last_progress_timestamp_seconds gauge
		tributary_reflector_last_progress_timestamp_seconds{reflector="pods"} 1.375
		# HELP tributary_reflector_proven_timestamp_seconds The moment of which the copy is proven to be the server's state.
		# TYPE tributary_reflector_proven_timestamp_seconds gauge
		tributary_reflector_proven_timestamp_seconds{reflector="pods"} 1.125
		# HELP tributary_reflector_retry_timestamp_seconds When the next request is made, while one is waited for.
		# TYPE tributary_reflector_retry_timestamp_seconds gauge
		tributary_reflector_retry_timestamp_seconds{reflector="pods"} 1.625
		# HELP tributary_reflector_skipped_objects_total Objects and events that could not be decoded or stored.
		# TYPE tributary_reflector_skipped_objects_total counter
		tributary_reflector_skipped_objects_total{reflector="pods"} 2
		# HELP tributary_reflector_synced 1 once the store has held a whole state of the server.
		# TYPE tributary_reflector_synced gauge
		tributary_reflector_synced{reflector="pods"} 1
	`), names...))

	forget()
	count, err := testutil.GatherAndCount(registry)
	require.NoError(t, err)
	require.Zero(t, count)
}

// TestReflectorReports runs a reflector that is refused at once: a server that does not know
// widgets.
func TestReflectorReports(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics, err := prom.New(registry)
	require.NoError(t, err)
	client, stop := server(t)
	r := reflector.New(listwatch.FromClient[corev1.Pod](client, "widgets"), store.NewIndexer[*corev1.Pod](),
		metrics.Option("widgets"), reflector.WithFinalErrors())
	forget := metrics.Track("widgets", r)
	require.Error(t, r.Run(t.Context()))
	stop()
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
		# HELP tributary_reflector_lists_total Lists, why they were made and how they ended.
		# TYPE tributary_reflector_lists_total counter
		tributary_reflector_lists_total{cause="ok",class="not_found",kind="watchlist",reflector="widgets"} 1
	`), "tributary_reflector_lists_total"))
	forget()
	count, err := testutil.GatherAndCount(registry)
	require.NoError(t, err)
	require.Zero(t, count, "no series outlives its reflector")
}

func TestRegisteringTwiceFails(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, err := prom.New(registry)
	require.NoError(t, err)
	_, err = prom.New(registry)
	require.ErrorContains(t, err, "register once per process")
}

func TestATakenNameIsNotForgottenByItsFormerOwner(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := prom.New(registry)
	require.NoError(t, err)
	forgetOld := metrics.Track("pods", &tracked{})
	metrics.Track("pods", &tracked{reflector.Status{Synced: true}})
	forgetOld()
	count, err := testutil.GatherAndCount(registry, "tributary_reflector_synced")
	require.NoError(t, err)
	require.Equal(t, 1, count)
}
