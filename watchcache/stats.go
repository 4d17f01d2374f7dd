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
	tooSlow, tooOld          atomic.Uint64
	differences              atomic.Uint64
	watchers                 atomic.Int64
	readsWaited, waited      atomic.Int64 // waited in nanoseconds
	lags                     [stages]lag
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
		"How many events the watch cache may hold.", "group", "resource")
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
	tooOldTotal     = ours.Counter("too_old_watches_total", "Watches that began at a version which is forgotten, or lost their place to a new history.", "group", "resource")
	offeredTotal    = ours.Counter("differences_total", "Differences told to watchers in place of changes that they have missed.", "group", "resource")
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
	events, bytes := c.window.Len(), c.window.bytes.Load()
	c.mu.RUnlock()
	s := &c.stats
	return slices.Values(slices.AppendSeq([]metrics.Sample{
		capacity.Of(float64(c.config.window), labels...),
		versionGauge.Of(float64(c.current()), labels...),
		receivedTotal.Of(count(&s.received), labels...),
		dispatchedTotal.Of(count(&s.received), labels...),
		initialTotal.Of(count(&s.initial), labels...),
		filledTotal.Of(count(&c.lists), labels...),
		slowTotal.Of(count(&s.tooSlow), labels...),
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
		tooOldTotal.Of(count(&s.tooOld), labels...),
		offeredTotal.Of(count(&s.differences), labels...),
	}, s.lagSamples(labels)))
}
