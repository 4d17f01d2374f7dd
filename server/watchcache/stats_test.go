package watchcache_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
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
		stuck, err := c.Watcher(watchcache.Request{})
		require.NoError(t, err)
		stuck.CountUnread()
		stuck.Close()
		synctest.Wait()
		n := numbers(c)
		for name, want := range map[string]float64{
			"watch_cache_capacity":                              changes,
			"apiserver_watch_cache_resource_version":            4 + changes,
			"apiserver_watch_cache_events_received_total":       1 + changes,
			"apiserver_init_events_total":                       1,
			"apiserver_watch_cache_initializations_total":       1,
			"apiserver_terminated_watchers_total":               2,
			"tributary_watch_cache_cut_watchers_total count":    1,
			"tributary_watch_cache_cut_watchers_total start":    1,
			"tributary_watch_cache_cut_watchers_total unread":   1,
			"apiserver_cache_list_total":                        1,
			"apiserver_cache_list_fetched_objects_total":        2,
			"apiserver_cache_list_returned_objects_total":       2,
			"apiserver_watch_cache_consistent_read_total true":  1,
			"apiserver_watch_cache_consistent_read_total false": 1,
			"apiserver_watch_cache_read_wait_seconds_count":     1,
			"apiserver_watch_cache_read_wait_seconds_sum":       1,
			"tributary_watch_cache_watchers":                    1,
			"tributary_watch_cache_events":                      changes,
			"apiserver_watch_cache_events_dispatched_total":     1 + changes,
		} {
			got, there := n[name]
			require.True(t, there, name)
			require.Equal(t, want, got, name)
		}
		require.Positive(t, n["tributary_watch_cache_bytes"])
		cancel()
		for range lines {
		}
		require.Zero(t, numbers(c)["tributary_watch_cache_watchers"])
	})
}

// TestLagByStage: of 64 changes the first is measured in each stage: until its write is over, which
// an observer delays, until its watcher asks for it, and until it asks for more.
func TestLagByStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t)
		require.NoError(t, c.Replace(store.Items(stored("a", 1)), store.At("1")))
		w, err := c.Watcher(watchcache.Request{ListOptions: internalversion.ListOptions{ResourceVersion: "1"}})
		require.NoError(t, err)
		defer w.Close()
		c.OnChange(func(listwatch.Event[*corev1.Pod]) { time.Sleep(5 * time.Millisecond) })
		require.NoError(t, c.Update(stored("a", 2)))
		time.Sleep(50 * time.Millisecond)
		events, err := w.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 1)
		time.Sleep(500 * time.Millisecond)
		_, waits, err := w.Poll(t.Context(), func() {})
		require.True(t, waits)
		require.NoError(t, err)
		for i := range 63 {
			require.NoError(t, c.Update(stored("a", 3+i)))
		}

		n := numbers(c)
		const name = "tributary_watch_cache_delivery_lag_seconds_"
		for stage, sum := range map[string]float64{"store": 0.005, "take": 0.055, "write": 0.5} {
			require.InDelta(t, sum, n[name+"sum "+stage], 1e-6, stage)
			require.Equal(t, 1.0, n[name+"count "+stage], stage)
		}
	})
}

// TestTheCapacityIsWhatFits: of large objects the bytes allow fewer events than the count.
func TestTheCapacityIsWhatFits(t *testing.T) {
	const most, events = 1 << 20, 1000
	c := newCache(t, watchcache.WithWindowBytes(most), watchcache.WithWindow(events))
	capacity := func() float64 { return numbers(c)["watch_cache_capacity"] }
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	require.EqualValues(t, events, capacity(), "of nothing there is room for all")
	require.NoError(t, c.Update(stored("small", 2)))
	require.EqualValues(t, 512, capacity(), "a change without an old object weighs 1 KB")
	for version := 3; version < 40; version++ {
		require.NoError(t, c.Update(fat(version, 100)))
	}
	held := watchcache.HeldBy(c)
	require.Equal(t, 5, held.Window)
	require.EqualValues(t, held.Window, capacity())
}

// TestCutsHaveACause: a watcher that has caught up is cut for each of the causes.
func TestCutsHaveACause(t *testing.T) {
	const everything, node = "", "spec.nodeName=node-1"
	updates := func(n int, of func(version int) *corev1.Pod) func(*testing.T, *podCache) {
		return func(t *testing.T, c *podCache) {
			for i := range n {
				require.NoError(t, c.Update(of(2+i)))
			}
		}
	}
	small := func(version int) *corev1.Pod {
		p := stored("a", version)
		onNode("node-1")(p)
		return p
	}
	large := func(version int) *corev1.Pod {
		p := fat(version, 100)
		onNode("node-1")(p)
		return p
	}
	for name, is := range map[string]struct {
		cause, selector string
		do              func(*testing.T, *podCache)
	}{
		"more than the window":    {"count", everything, updates(2001, small)},
		"more of its own":         {"count", node, updates(2001, small)},
		"heavier than the window": {"bytes", everything, updates(200, large)},
		"heavier than its share":  {"bytes", node, updates(200, large)},
		"older than the window": {"age", everything, func(t *testing.T, c *podCache) {
			updates(1100, small)(t, c)
			time.Sleep(time.Hour)
			require.NoError(t, c.Update(small(2000)))
		}},
		"another history": {"relist", node, func(t *testing.T, c *podCache) {
			updates(2, small)(t, c)
			require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
		}},
		"expired": {"expired", node, func(t *testing.T, c *podCache) {
			updates(2, small)(t, c)
			c.Expire(10)
		}},
		"compacted": {"expired", everything, func(t *testing.T, c *podCache) {
			updates(2, small)(t, c)
			c.Compact()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCache(t, watchcache.WithWindow(2000), watchcache.WithWindowBytes(8<<20))
				require.NoError(t, c.Replace(store.Items(small(1)), store.At("1")))
				w := waiting(t, c, metav1.ListOptions{ResourceVersion: "1", FieldSelector: is.selector}, func() {})
				defer w.Close()
				is.do(t, c)
				_, _, err := w.Poll(t.Context(), func() {})
				require.True(t, apierrors.IsResourceExpired(err), "%v", err)
				for label, count := range numbers(c) {
					if cause, ok := strings.CutPrefix(label, "tributary_watch_cache_cut_watchers_total "); ok {
						require.Equal(t, cause == is.cause, count == 1, "%s: %v", label, count)
					}
				}
			})
		})
	}
}
