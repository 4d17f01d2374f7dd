package watchcache

import (
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tributary-go/tributary/internal/following"
	"github.com/tributary-go/tributary/metrics"
)

// stats is what a cache counts.
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
type cause int

const (
	overCount cause = iota // it has more changes to read than [WithWindow] permits
	overBytes              // they weigh more than its share of [WithWindowBytes]
	overAge                // the oldest is older than [WithWindowAge]
	relisted               // a relist has skipped what it was to see
	expired                // by [Cache.Expire] or [Cache.Compact]
	tooLate                // it began at a version that is forgotten
	unread                 // its client does not take what is sent
	causes
)

func (c cause) String() string {
	return [causes]string{"count", "bytes", "age", "relist", "expired", "start", "unread"}[c]
}

// isTooSlow reports whether the API server counts it as terminated, too.
func (c cause) isTooSlow() bool { return c <= overAge || c == unread }

// whyLost is the cause that has taken from the watcher what it was to read.
func (w *Watcher[T]) whyLost() cause {
	c := w.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	switch l := w.lane.Load(); {
	case w.gap != nil:
		return relisted
	case w.position < c.lost.Load():
		return c.lostBy
	case l != nil && l.trigger != nil:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.lostBy
	}
	return c.window.lostBy
}

// cutSamples are a sample for each cause, and their sum as the API server has it.
func (s *stats) cutSamples(labels []string) []metrics.Sample {
	var all []metrics.Sample
	slow := uint64(0)
	for why := range causes {
		n := s.cut[why].Load()
		if why.isTooSlow() {
			slow += n
		}
		all = append(all, cutTotal.Of(float64(n), append(labels[:3:3], why.String())...))
	}
	return append(all, slowTotal.Of(float64(slow), labels...))
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

// The names are the API server's where the number means the same. Each has a first label for the
// reporter.
var (
	theirs   = metrics.Family{Prefix: "apiserver_", Label: "server"}
	capacity = metrics.Family{Prefix: "watch_cache_", Label: "server"}.Gauge("capacity",
		"How many events of their present mean size the watch cache may hold.", "group", "resource")
	ours = metrics.Family{Prefix: "tributary_watch_cache_", Label: "server"}

	versionGauge    = theirs.Gauge("watch_cache_resource_version", "The version up to which the watch cache is complete.", "group", "resource")
	receivedTotal   = theirs.Counter("watch_cache_events_received_total", "Changes that came into the watch cache.", "group", "resource")
	dispatchedTotal = theirs.Counter("watch_cache_events_dispatched_total", "Changes whose watchers have been woken: all that were received, since a write does both.", "group", "resource")
	initialTotal    = theirs.Counter("init_events_total", "Initial events of watches.", "group", "resource")
	filledTotal     = theirs.Counter("watch_cache_initializations_total", "Lists that replaced the whole content.", "group", "resource")
	slowTotal       = theirs.Counter("terminated_watchers_total", "Watchers that were cut because they read too slowly.", "group", "resource")
	listTotal       = theirs.Counter("cache_list_total", "LIST requests answered.", "group", "resource")
	fetchedTotal    = theirs.Counter("cache_list_fetched_objects_total", "Objects looked at for LIST requests.", "group", "resource")
	returnedTotal   = theirs.Counter("cache_list_returned_objects_total", "Objects returned for LIST requests.", "group", "resource")
	consistent      = theirs.Counter("watch_cache_consistent_read_total", "Reads that waited for a proof that the copy is fresh.", "group", "resource", "success")
	readsWaited     = theirs.Counter("watch_cache_read_wait_seconds_count", "Reads that waited for a version.", "group", "resource")
	readWait        = theirs.Counter("watch_cache_read_wait_seconds_sum", "How long reads waited for a version.", "group", "resource")
	objectsGauge    = ours.Gauge("objects", "Objects held.", "group", "resource")
	watchersGauge   = ours.Gauge("watchers", "Open watches.", "group", "resource")
	eventsGauge     = ours.Gauge("events", "Events that the watch cache holds.", "group", "resource")
	bytesGauge      = ours.Gauge("bytes", "Estimated bytes of old versions of objects that the watch cache holds.", "group", "resource")
	encodingsGauge  = ours.Gauge("encoding_bytes", "Bytes of encoded events that the watch cache holds.", "group", "resource")
	cutTotal        = ours.Counter("cut_watchers_total", "Watchers that were cut, by cause.", "group", "resource", "cause")
)

// Follow implements [metrics.Follower]. The copy's name is the server's, a slash and the resource.
func (c *Cache[T]) Follow(name string) (changes func() iter.Seq[metrics.Change]) {
	return following.Snapshots(name+"/"+c.resource.GroupResource().String(), c.Snapshot)
}

// Samples implements [metrics.Reporter]. The name stands for the server.
func (c *Cache[T]) Samples(name string) iter.Seq[metrics.Sample] {
	labels := []string{name, c.resource.Group, c.resource.Plural}
	with := func(more string) []string { return append(labels[:3:3], more) }
	seconds := func(nanoseconds *atomic.Int64) float64 { return time.Duration(nanoseconds.Load()).Seconds() }
	count := func(n *atomic.Uint64) float64 { return float64(n.Load()) }
	c.mu.RLock()
	events, bytes, most := c.window.Len(), c.window.bytes, c.window.capacity()
	c.mu.RUnlock()
	s := &c.stats
	return slices.Values(slices.AppendSeq([]metrics.Sample{
		capacity.Of(float64(most), labels...),
		versionGauge.Of(float64(c.current()), labels...),
		receivedTotal.Of(count(&s.received), labels...),
		dispatchedTotal.Of(count(&s.received), labels...),
		initialTotal.Of(count(&s.initial), labels...),
		filledTotal.Of(count(&c.lists), labels...),
		listTotal.Of(count(&s.lists), labels...),
		fetchedTotal.Of(count(&s.fetched), labels...),
		returnedTotal.Of(count(&s.returned), labels...),
		consistent.Of(count(&s.proven), with("true")...),
		consistent.Of(count(&s.unproven), with("false")...),
		readsWaited.Of(float64(s.readsWaited.Load()), labels...),
		readWait.Of(seconds(&s.waited), labels...),
		objectsGauge.Of(float64(c.Snapshot().Len()), labels...),
		watchersGauge.Of(float64(s.watchers.Load()), labels...),
		eventsGauge.Of(float64(events), labels...),
		bytesGauge.Of(float64(bytes), labels...),
		encodingsGauge.Of(float64(c.encodings.held()), labels...),
	}, slices.Values(append(s.cutSamples(labels), slices.Collect(s.lagSamples(labels))...))))
}
