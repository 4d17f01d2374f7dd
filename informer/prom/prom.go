package prom

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/reflector"
	reflectorprom "github.com/tributary-go/tributary/reflector/prom"
)

// Metrics holds the series of any number of informers. It is safe for concurrent use.
type Metrics struct {
	reflectors *reflectorprom.Metrics

	mu      sync.Mutex // guards what follows
	tracked map[string]Tracked
	sets    map[*informer.Set]struct{}
}

// Tracked is an informer of any type.
type Tracked interface {
	Status() informer.Status
}

// New registers the metrics, those of reflector/prom included. It fails where either are registered already: one Metrics
// serves all informers of a process, and [Metrics.Reflectors] its other reflectors.
func New(registerer prometheus.Registerer) (*Metrics, error) {
	reflectors, err := reflectorprom.New(registerer)
	if err != nil {
		return nil, fmt.Errorf("prom: metrics of reflectors: %w", err)
	}
	m := &Metrics{reflectors: reflectors, tracked: map[string]Tracked{}, sets: map[*informer.Set]struct{}{}}
	if err := registerer.Register((*statuses)(m)); err != nil {
		return nil, fmt.Errorf("prom: register once per process, and share: %w", err)
	}
	return m, nil
}

// Reflectors are the metrics for reflectors without an informer.
func (m *Metrics) Reflectors() *reflectorprom.Metrics { return m.reflectors }

// Option makes an informer's reflector report under a name. All informers of a set report under one.
func (m *Metrics) Option(name string) informer.Option {
	return informer.WithReflector(m.reflectors.Option(name))
}

// Track shows an informer's Status under a name, read at each scrape. The result removes all series of that name; call it
// when Run has returned. A name that is tracked already is taken over.
func (m *Metrics) Track(name string, i Tracked) (forget func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tracked[name] = i
	forgetReflector := m.reflectors.Track(name, reflectorOf{i})
	return func() {
		forgetReflector()
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.tracked[name] == i {
			delete(m.tracked, name)
		}
	}
}

// TrackSet shows each copy that is leased of a set, and its reflector, under the copy's own name, from its first lease to its
// last. The result removes them.
func (m *Metrics) TrackSet(s *informer.Set) (forget func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sets[s] = struct{}{}
	forgetReflectors := m.reflectors.TrackEach(func(yield func(string, reflector.Status) bool) {
		for _, c := range s.Status() {
			if !yield(c.Name, c.Status.Status) {
				return
			}
		}
	})
	return func() {
		forgetReflectors()
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.sets, s)
	}
}

// reflectorOf is the reflector's part of an informer's status.
type reflectorOf struct{ Tracked }

func (r reflectorOf) Status() reflector.Status { return r.Tracked.Status().Status }

// statuses collects what is read from Status.
type statuses Metrics

var (
	byName      = []string{"informer"}
	byHandler   = []string{"informer", "handler"}
	objects     = describe("objects", "Objects held.", byName)
	drift       = describe("drift_objects", "Objects that differed from the server's at the last verification.", byName)
	handlers    = describe("handlers", "Handlers of this name.", byHandler)
	synced      = describe("handler_synced", "1 once the handlers have returned from their initial lists.", byHandler)
	lagEvents   = describe("handler_lag_events", "Changes that the handler has not returned from yet.", byHandler)
	lagSeconds  = describe("handler_lag_seconds", "How long the oldest of these changes has waited.", byHandler)
	delivered   = describe("handler_events_total", "Events told, in whole batches.", byHandler)
	differences = describe("handler_differences_total", "How often the handler fell behind the ring and was told a difference.", byHandler)
	failed      = describe("handlers_failed", "Handlers that have ended with a panic.", byHandler)
)

func describe(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("tributary", "informer", name), help, labels, nil)
}

// Describe implements prometheus.Collector.
func (s *statuses) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{objects, drift, handlers, synced, lagEvents, lagSeconds, delivered, differences, failed} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s *statuses) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := map[string]bool{}
	show := func(name string, status informer.Status) {
		if !shown[name] { // as in reflector/prom: two sets may have copies of one name
			shown[name] = true
			collect(to, name, status)
		}
	}
	for name, i := range s.tracked {
		show(name, i.Status())
	}
	for set := range s.sets {
		for _, c := range set.Status() {
			show(c.Name, c.Status)
		}
	}
}

func collect(to chan<- prometheus.Metric, name string, status informer.Status) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, append([]string{name}, labels...)...)
	}
	send(objects, prometheus.GaugeValue, float64(status.Objects))
	if !status.Drift.At.IsZero() {
		send(drift, prometheus.GaugeValue, float64(status.Drift.Count))
	}
	for handler, h := range joined(status.Handlers) {
		send(handlers, prometheus.GaugeValue, float64(h.count), handler)
		send(synced, prometheus.GaugeValue, truth(h.Synced), handler)
		send(lagEvents, prometheus.GaugeValue, float64(h.Lag.Events), handler)
		send(lagSeconds, prometheus.GaugeValue, h.Lag.Age.Seconds(), handler)
		send(delivered, prometheus.CounterValue, float64(h.Delivered), handler)
		send(differences, prometheus.CounterValue, float64(h.Differences), handler)
		send(failed, prometheus.GaugeValue, float64(h.failed), handler)
	}
}

// sum is all handlers of one name.
type sum struct {
	informer.HandlerStatus
	count, failed int
}

// joined has one entry for each name, since two series of one name are an error of the whole scrape.
func joined(all []informer.HandlerStatus) map[string]sum {
	byName := map[string]sum{}
	for _, h := range all {
		name := h.Name
		if h.Unnamed {
			name = "unnamed"
		}
		s, ok := byName[name]
		s.Synced = h.Synced && (s.Synced || !ok)
		s.Lag.Events = max(s.Lag.Events, h.Lag.Events)
		s.Lag.Age = max(s.Lag.Age, h.Lag.Age)
		s.Delivered += h.Delivered
		s.Differences += h.Differences
		s.count++
		if h.Err != nil {
			s.failed++
		}
		byName[name] = s
	}
	return byName
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
