package watchcache_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
)

var _ metrics.Reporter = (*podCache)(nil)

// numbers are the samples of a cache, by name.
func numbers(c *podCache) map[string]float64 {
	all := map[string]float64{}
	for s := range c.Samples("edge") {
		name := s.Metric.Name
		if len(s.Labels) > 3 {
			name += " " + strings.Join(s.Labels[3:], " ")
		}
		all[name] = s.Value
	}
	return all
}

// TestSamplesCountWhatHappened: every number of a cache, after one of each event.
func TestSamplesCountWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const changes = 64 // of which one is measured
		u := &upstream{}
		c := newCache(t, watchcache.WithUpstream(u), watchcache.WithWindow(changes))
		a, b := stored("a", 1), stored("b", 2)
		onNode("node-1")(a)
		require.NoError(t, c.Replace(store.Items(a, b), store.At("2")))

		u.writes(2)
		page, err := c.Page(t.Context(), watchcache.Request{Namespace: "ns"})
		require.NoError(t, err)
		require.Len(t, page.Objects, 2)
		go func() {
			time.Sleep(time.Second)
			_ = c.Bookmark("3")
		}()
		require.NoError(t, c.WaitFor(t.Context(), "3"))
		u.err = context.DeadlineExceeded
		require.Error(t, c.WaitFresh(t.Context()))

		ctx, cancel := context.WithCancel(t.Context())
		lines := follows(ctx, c, metav1.ListOptions{ResourceVersion: "0", FieldSelector: "spec.nodeName=node-1"})
		require.Equal(t, "ADDED a@1", <-lines)
		slow := start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "3", FieldSelector: "spec.nodeName=node-1"}))
		for i := range changes + 1 {
			synctest.Wait()
			next := stored("a", 4+i)
			onNode("node-1")(next)
			require.NoError(t, c.Update(next))
			require.Equal(t, fmt.Sprintf("MODIFIED a@%d", 4+i), <-lines)
		}
		slow.RequireExpired()
		start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "3"})).RequireExpired()
		synctest.Wait()
		n := numbers(c)
		for name, want := range map[string]float64{
			"watch_cache_capacity":                              changes,
			"apiserver_watch_cache_resource_version":            4 + changes,
			"apiserver_watch_cache_events_received_total":       1 + changes,
			"apiserver_init_events_total":                       1,
			"apiserver_watch_cache_initializations_total":       1,
			"apiserver_terminated_watchers_total":               1,
			"tributary_watch_cache_too_old_watches_total":       1,
			"apiserver_cache_list_total":                        1,
			"apiserver_cache_list_fetched_objects_total":        2,
			"apiserver_cache_list_returned_objects_total":       2,
			"apiserver_watch_cache_consistent_read_total true":  1,
			"apiserver_watch_cache_consistent_read_total false": 1,
			"apiserver_watch_cache_read_wait_seconds_count":     1,
			"apiserver_watch_cache_read_wait_seconds_sum":       1,
			"tributary_watch_cache_watchers":                    1,
			"tributary_watch_cache_events":                      changes,
			"tributary_watch_cache_delivery_lag_seconds_sum":    0,
		} {
			got, there := n[name]
			require.True(t, there, name)
			require.Equal(t, want, got, name)
		}
		require.Positive(t, n["tributary_watch_cache_bytes"])
		require.Positive(t, n["tributary_watch_cache_delivery_lag_seconds_count"])
		cancel()
		for range lines {
		}
		require.Zero(t, numbers(c)["tributary_watch_cache_watchers"])
	})
}
