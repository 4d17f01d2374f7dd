package watchcache

import (
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tributary-go/tributary/internal/following"
	"github.com/tributary-go/tributary/metrics"
)

// stats are the counters of a cache.
type stats struct {
	received, initial        atomic.Uint64
	lists, fetched, returned atomic.Uint64
	proven, unproven         atomic.Uint64
	cut                      [causes]atomic.Uint64
	watchers                 atomic.Int64
	readsWaited, waited      atomic.Int64 // waited in nanoseconds
	lags                     [stages]lag
}

// CountUnread counts the watcher among those that were cut because they are too slow. Call it
// before [Watcher.Close] if the client has not taken the events in time: only its server knows.
func (w *Watcher[T]) CountUnread() { w.countCut(unread) }

func (w *Watcher[T]) countCut(why cause) { w.cache.stats.cut[why].Add(1) }

// cause is why a watcher was cut.
type cause uint8

const (
	overCount cause = iota // it has more changes to read than [WithWindow] permits
	overBytes              // they weigh more than its share of [WithWindowBytes]
	overAge                // the oldest is older than the window's age
	relisted               // a relist has skipped changes that were to be told
	expired                // by [Cache.Expire] or [Cache.Compact]
	tooLate                // it began at a version that is forgotten
	unread                 // its client does not take the events
	causes
)

func (c cause) String() string {
	return [causes]string{"count", "bytes", "age", "relist", "expired", "start", "unread"}[c]
}

// isTooSlow reports whether the API server counts it as terminated, too.
func (c cause) isTooSlow() bool { return c <= overAge || c == unread }

// whyLost is why the watcher's unread changes were dropped.
func (w *Watcher[T]) whyLost() cause {
	c := w.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	switch l := w.lane.Load(); {
	case w.position < c.lost.Load():
		return c.lostBy
	case l != nil && !w.all:
		l.mu.Lock()
		defer l.mu.Unlock()
		if w.position < l.gone {
			return l.lostBy
		}
	case w.position < c.window.First():
		return c.window.lostBy
	}
	return relisted // nothing has dropped it: it is of a gap
}

// cuts are how many watchers were cut, by cause.
func (s *stats) cuts() map[string]uint64 {
	counts := map[string]uint64{}
	for why := range causes {
		counts[why.String()] = s.cut[why].Load()
	}
	return counts
}

// tooSlow is how many watchers the API server would count as terminated.
func (s *stats) tooSlow() (n uint64) {
	for why := range causes {
		if why.isTooSlow() {
			n += s.cut[why].Load()
		}
	}
	return n
}

// capacity is how many changes of the present mean weight the window can hold.
func (w *window[T]) capacity() int {
	events, bytes := w.Len(), w.bytes
	if events == 0 || bytes == 0 {
		return w.limits.events
	}
	return int(min(int64(w.limits.events), max(1, w.limits.bytes*int64(events)/bytes)))
}

// waitedFor measures a read that had to wait for a version.
func (s *stats) waitedFor(since time.Time) {
	s.readsWaited.Add(1)
	s.waited.Add(int64(time.Since(since)))
}

func (s *stats) proved(err error) {
	if err == nil {
		s.proven.Add(1)
	} else {
		s.unproven.Add(1)
	}
}

// numbers are the values that a cache reports.
type numbers struct {
	*stats
	version, filled           uint64
	objects, events, capacity int
	bytes, encodings          int64
}

// reads are how many reads were proven fresh, and how many not.
func (n numbers) reads() map[string]uint64 {
	return map[string]uint64{"true": n.proven.Load(), "false": n.unproven.Load()}
}

// The names are the API server's where the number means the same.
var table = metrics.NewTable([]string{"server", "group", "resource"},
	metrics.Gauge("watch_cache_capacity", "How many events of their present mean size the watch cache may hold.", func(n numbers) int { return n.capacity }),
	metrics.Gauge("apiserver_watch_cache_resource_version", "The version up to which the watch cache is complete.", func(n numbers) uint64 { return n.version }),
	metrics.Counter("apiserver_watch_cache_events_received_total", "Changes that came into the watch cache.", func(n numbers) uint64 { return n.received.Load() }),
	metrics.Counter("apiserver_watch_cache_events_dispatched_total", "Changes whose watchers have been woken: all that were received, since a write does both.",
		func(n numbers) uint64 { return n.received.Load() }),
	metrics.Counter("apiserver_init_events_total", "Initial events of watches.", func(n numbers) uint64 { return n.initial.Load() }),
	metrics.Counter("apiserver_watch_cache_initializations_total", "Lists that replaced the whole content.", func(n numbers) uint64 { return n.filled }),
	metrics.Counter("apiserver_terminated_watchers_total", "Watchers that were cut because they read too slowly.", numbers.tooSlow),
	metrics.Counter("apiserver_cache_list_total", "LIST requests answered.", func(n numbers) uint64 { return n.lists.Load() }),
	metrics.Counter("apiserver_cache_list_fetched_objects_total", "Objects looked at for LIST requests.", func(n numbers) uint64 { return n.fetched.Load() }),
	metrics.Counter("apiserver_cache_list_returned_objects_total", "Objects returned for LIST requests.", func(n numbers) uint64 { return n.returned.Load() }),
	metrics.By("success", numbers.reads,
		metrics.Counter("apiserver_watch_cache_consistent_read_total", "Reads that waited for a proof that the copy is fresh.", metrics.Itself[uint64])),
	metrics.Counter("apiserver_watch_cache_read_wait_seconds_count", "Reads that waited for a version.", func(n numbers) int64 { return n.readsWaited.Load() }),
	metrics.Counter("apiserver_watch_cache_read_wait_seconds_sum", "How long reads waited for a version.", func(n numbers) time.Duration { return time.Duration(n.waited.Load()) }),
	metrics.Gauge("tributary_watch_cache_objects", "Objects held.", func(n numbers) int { return n.objects }),
	metrics.Gauge("tributary_watch_cache_watchers", "Open watches.", func(n numbers) int64 { return n.watchers.Load() }),
	metrics.Gauge("tributary_watch_cache_events", "Events that the watch cache holds.", func(n numbers) int { return n.events }),
	metrics.Gauge("tributary_watch_cache_bytes", "Estimated bytes of old versions of objects that the watch cache holds.", func(n numbers) int64 { return n.bytes }),
	metrics.Gauge("tributary_watch_cache_encoding_bytes", "Bytes of encoded events that the watch cache holds.", func(n numbers) int64 { return n.encodings }),
	metrics.By("cause", numbers.cuts,
		metrics.Counter("tributary_watch_cache_cut_watchers_total", "Watchers that were cut, by cause.", metrics.Itself[uint64])),
	metrics.By("stage", numbers.lagsByStage,
		metrics.Counter("tributary_watch_cache_delivery_lag_seconds_sum",
			"Time of measured changes in a stage: store, from the write to the window; take, until a watcher has it; write, until the watcher is asked for more.",
			func(l *lag) time.Duration { return time.Duration(l.sum.Load()) }),
		metrics.Counter("tributary_watch_cache_delivery_lag_seconds_count", "Measurements in a stage: one write in 64, and its deliveries.",
			func(l *lag) uint64 { return l.count.Load() }),
	),
)

// Follow implements [metrics.Follower]. The copy's name is the server's, a slash and the resource.
func (c *Cache[T]) Follow(name string) (changes func() iter.Seq[metrics.Change]) {
	resource := c.kind.GroupResource().String()
	return following.Snapshots(name+"/"+resource, func() string { return resource }, c.Snapshot)
}

// Samples implements [metrics.Reporter]. The name stands for the server.
func (c *Cache[T]) Samples(name string) iter.Seq[metrics.Sample] {
	n := numbers{
		stats: &c.stats, version: c.current(), filled: c.lists.Load(), objects: c.Snapshot().Len(), encodings: c.encodings.held(),
	}
	c.mu.RLock()
	n.events, n.bytes, n.capacity = c.window.Len(), c.window.bytes, c.window.capacity()
	c.mu.RUnlock()
	return slices.Values(table(n, name, c.kind.Group, c.kind.Plural))
}
