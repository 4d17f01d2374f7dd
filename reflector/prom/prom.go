package prom

import (
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-go/tributary/reflector"
)

const namespace, subsystem = "tributary", "reflector"

// Metrics holds the series of any number of reflectors. It is safe for concurrent use.
type Metrics struct {
	lists, watches               *prometheus.CounterVec
	listSeconds, watchSeconds    *prometheus.HistogramVec
	itemsPerList, eventsPerWatch *prometheus.HistogramVec

	mu      sync.Mutex // guards what follows
	tracked map[string]Tracked
	groups  map[*iter.Seq2[string, reflector.Status]]struct{}
}

// Tracked is a reflector of any type.
type Tracked interface {
	Status() reflector.Status
}

// New registers the metrics. It fails where they are registered already: one Metrics serves all reflectors of a process.
func New(registerer prometheus.Registerer) (*Metrics, error) {
	seconds := prometheus.ExponentialBuckets(0.01, 4, 9) // 10 ms to 11 min
	counts := prometheus.ExponentialBuckets(1, 10, 7)    // 1 to a million
	m := &Metrics{
		lists:          counter("lists_total", "Lists, why they were made and how they ended.", "kind", "cause", "class"),
		listSeconds:    histogram("list_duration_seconds", "How long a list took.", seconds, "kind"),
		itemsPerList:   histogram("items_per_list", "Objects per completed list.", counts),
		watches:        counter("watches_total", "Watches and how they ended.", "class"),
		watchSeconds:   histogram("watch_duration_seconds", "How long a watch lasted.", seconds),
		eventsPerWatch: histogram("items_per_watch", "Events per watch.", counts),
		tracked:        map[string]Tracked{},
		groups:         map[*iter.Seq2[string, reflector.Status]]struct{}{},
	}
	for _, c := range []prometheus.Collector{m.lists, m.listSeconds, m.itemsPerList, m.watches, m.watchSeconds, m.eventsPerWatch, (*statuses)(m)} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("prom: register once per process, and share: %w", err)
		}
	}
	return m, nil
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help},
		append([]string{"reflector"}, labels...))
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help, Buckets: buckets},
		append([]string{"reflector"}, labels...))
}

// Option makes a reflector report under a name.
func (m *Metrics) Option(name string) reflector.Option {
	return reflector.WithMetrics(named{m, name})
}

// named is the reports of one reflector.
type named struct {
	*Metrics
	name string
}

func (n named) ListEnded(s reflector.ListStats) {
	kind := "list"
	if s.WatchList {
		kind = "watchlist"
	}
	n.lists.WithLabelValues(n.name, kind, string(s.Cause), string(s.Class)).Inc()
	n.listSeconds.WithLabelValues(n.name, kind).Observe(s.Duration.Seconds())
	if s.Class == reflector.OK {
		n.itemsPerList.WithLabelValues(n.name).Observe(float64(s.Items))
	}
}

func (n named) WatchEnded(s reflector.WatchStats) {
	n.watches.WithLabelValues(n.name, string(s.Class)).Inc()
	n.watchSeconds.WithLabelValues(n.name).Observe(s.Duration.Seconds())
	n.eventsPerWatch.WithLabelValues(n.name).Observe(float64(s.Events))
}

// Track shows a reflector's Status under a name, read at each scrape. The result removes all series of that name; call it
// when Run has returned. A name that is tracked already is taken over.
func (m *Metrics) Track(name string, r Tracked) (forget func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tracked[name] = r
	return func() { m.forget(name, r) }
}

func (m *Metrics) forget(name string, r Tracked) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tracked[name] != r {
		return // somebody else has the name by now
	}
	delete(m.tracked, name)
	mine := prometheus.Labels{"reflector": name}
	for _, vec := range []interface{ DeletePartialMatch(prometheus.Labels) int }{
		m.lists, m.listSeconds, m.itemsPerList, m.watches, m.watchSeconds, m.eventsPerWatch,
	} {
		vec.DeletePartialMatch(mine)
	}
}

// TrackEach shows reflectors that come and go, by name, as they are at each scrape. A name that [Metrics.Track] has, or that came
// before, is passed over. The result removes them. each must not block, nor call Metrics.
func (m *Metrics) TrackEach(each iter.Seq2[string, reflector.Status]) (forget func()) {
	group := &each
	m.mu.Lock()
	defer m.mu.Unlock()
	m.groups[group] = struct{}{}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.groups, group)
	}
}

// statuses collects what is read from Status.
type statuses Metrics

var (
	byName      = []string{"reflector"}
	synced      = describe("synced", "1 once the store has held a whole state of the server.", byName)
	mayBeOld    = describe("may_be_old", "1 while the first state, read from a cache on request, is not proven to be the newest.", byName)
	retryAt     = describe("retry_timestamp_seconds", "When the next request is made, while one is waited for.", byName)
	lastContact = describe("last_contact_timestamp_seconds", "When the server was last heard.", byName)
	lastEvent   = describe("last_event_timestamp_seconds", "When the last object or event came, bookmarks apart.", byName)
	progress    = describe("last_progress_timestamp_seconds", "When the resource version last moved.", byName)
	failing     = describe("failing", "1 while something is wrong; the class says what.", []string{"reflector", "class"})
	skipped     = describe("skipped_objects_total", "Objects and events that could not be decoded or stored.", byName)
	unplaced    = describe("unplaced_events_total", "Events whose resource version contradicts the stream's.", byName)
	received    = describe("events_total", "Events received.", byName)
)

func describe(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, name), help, labels, nil)
}

// Describe implements prometheus.Collector.
func (s *statuses) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{synced, mayBeOld, retryAt, lastContact, lastEvent, progress, failing, skipped, unplaced, received} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s *statuses) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := map[string]bool{}
	show := func(name string, status reflector.Status) {
		if !shown[name] { // two series of one name are an error of the whole scrape
			shown[name] = true
			collect(to, name, status)
		}
	}
	for name, r := range s.tracked {
		show(name, r.Status())
	}
	for each := range s.groups {
		for name, status := range *each {
			show(name, status)
		}
	}
}

func collect(to chan<- prometheus.Metric, name string, status reflector.Status) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{name}, labels...)...)
	}
	count := func(d *prometheus.Desc, value int) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), name)
	}
	when := func(d *prometheus.Desc, at time.Time) {
		if !at.IsZero() {
			gauge(d, float64(at.UnixMilli())/1000)
		}
	}
	gauge(synced, truth(status.Synced))
	gauge(mayBeOld, truth(status.MayBeOld))
	when(retryAt, status.RetryAt)
	when(lastContact, status.LastContact)
	when(lastEvent, status.LastEvent)
	when(progress, status.LastProgress)
	if status.Err != nil {
		gauge(failing, 1, string(status.Class))
	}
	count(skipped, status.Skipped)
	count(unplaced, status.Unplaced)
	count(received, status.Events)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
