package prom

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
)

const namespace, subsystem = "tributary", "reflector"

// Metrics holds the series of any number of reporters. It is safe for concurrent use.
type Metrics struct {
	lists, watches               *prometheus.CounterVec
	listSeconds, watchSeconds    *prometheus.HistogramVec
	itemsPerList, eventsPerWatch *prometheus.HistogramVec

	mu      sync.Mutex // guards the fields below
	tracked map[string]metrics.Reporter
}

// New registers the metrics. It fails if they are registered already: one Metrics serves a whole
// process.
func New(registerer prometheus.Registerer) (*Metrics, error) {
	if null.Is(registerer) {
		return nil, errors.New("prom: New: the registerer is nil: give prometheus.DefaultRegisterer")
	}
	seconds := prometheus.ExponentialBuckets(0.01, 4, 9) // 10 ms to 11 min
	counts := prometheus.ExponentialBuckets(1, 10, 7)    // 1 to a million
	m := &Metrics{
		lists:          counter("lists_total", "Lists, why they were made and how they ended.", "kind", "cause", "class"),
		listSeconds:    histogram("list_duration_seconds", "How long a list took.", seconds, "kind"),
		itemsPerList:   histogram("items_per_list", "Objects per completed list.", counts),
		watches:        counter("watches_total", "Watches and how they ended.", "class"),
		watchSeconds:   histogram("watch_duration_seconds", "How long a watch lasted.", seconds),
		eventsPerWatch: histogram("items_per_watch", "Events per watch.", counts),
		tracked:        map[string]metrics.Reporter{},
	}
	for _, c := range []prometheus.Collector{m.lists, m.listSeconds, m.itemsPerList, m.watches, m.watchSeconds, m.eventsPerWatch, (*reported)(m)} {
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

// Option makes a reflector count its lists and watches under a name. For an informer, a union or a
// set, give it to informer.WithReflector; all copies of a set count under one name.
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

// Track shows a reporter under a name, read at each scrape. The result removes all series of that
// name; call it when Run has returned. A name that is tracked already is taken over.
func (m *Metrics) Track(name string, r metrics.Reporter) (forget func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tracked[name] = r
	return func() { m.forget(name, r) }
}

// TrackAll is [Metrics.Track] for all that a program runs, by name: reflectors, informers, unions,
// sets, sources, watch caches and their servers. The name of a set does not matter. The result
// removes the series of all of them.
func (m *Metrics) TrackAll(reporters map[string]metrics.Reporter) (forget func()) {
	var all []func()
	for name, r := range reporters {
		all = append(all, m.Track(name, r))
	}
	return func() {
		for _, forget := range all {
			forget()
		}
	}
}

func (m *Metrics) forget(name string, r metrics.Reporter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tracked[name] != r {
		return // another reporter has the name by now
	}
	delete(m.tracked, name)
	mine := prometheus.Labels{"reflector": name}
	for _, vec := range []interface{ DeletePartialMatch(prometheus.Labels) int }{
		m.lists, m.listSeconds, m.itemsPerList, m.watches, m.watchSeconds, m.eventsPerWatch,
	} {
		vec.DeletePartialMatch(mine)
	}
}

// reported collects the samples of all reporters.
type reported Metrics

// Describe implements prometheus.Collector. It describes nothing: which metrics there are is the
// reporters' to say.
func (*reported) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (r *reported) Collect(to chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	shown := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(r.tracked)) {
		for s := range r.tracked[name].Samples(name) {
			series := fmt.Sprintf("%s%q", s.Metric.Name, s.Labels)
			// Such as two sets with copies of one name; twice is an error of the whole scrape.
			if shown[series] {
				continue
			}
			shown[series] = true
			kind := prometheus.GaugeValue
			if s.Metric.Counter {
				kind = prometheus.CounterValue
			}
			description := prometheus.NewDesc(s.Metric.Name, s.Metric.Help, s.Metric.Labels, nil)
			to <- prometheus.MustNewConstMetric(description, kind, s.Value, s.Labels...)
		}
	}
}
