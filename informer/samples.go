package informer

import (
	"iter"
	"slices"

	"github.com/tributary-go/tributary/internal/following"
	"github.com/tributary-go/tributary/metrics"
)

var family = metrics.Family{Prefix: "tributary_informer_", Label: "informer"}

var (
	objects     = family.Gauge("objects", "Objects held.")
	drift       = family.Gauge("drift_objects", "Objects that differed from the server's at the last verification.")
	handlers    = family.Gauge("handlers", "Handlers of this name.", "handler")
	synced      = family.Gauge("handler_synced", "1 once the handlers have returned from their initial lists.", "handler")
	lagEvents   = family.Gauge("handler_lag_events", "Changes that the handler has not returned from yet.", "handler")
	lagSeconds  = family.Gauge("handler_lag_seconds", "How long the oldest of these changes has waited.", "handler")
	failed      = family.Gauge("handlers_failed", "Handlers that have ended with a panic.", "handler")
	delivered   = family.Counter("handler_events_total", "Events told, in whole batches.", "handler")
	differences = family.Counter("handler_differences_total", "How often the handler fell behind the ring and was told a difference.", "handler")
)

// Samples implements [metrics.Reporter].
func (i *shared[T]) Samples(name string) iter.Seq[metrics.Sample] { return i.Status().Samples(name) }

// Follow implements [metrics.Follower].
func (i *shared[T]) Follow(name string) (changes func() iter.Seq[metrics.Change]) {
	return following.Snapshots(name, i.Snapshot)
}

// Follow implements [metrics.Follower] for all leased copies, under their own names.
func (s *Set) Follow(string) (changes func() iter.Seq[metrics.Change]) {
	return following.Many(func() map[*leased]func() following.Changes {
		s.mu.Lock()
		defer s.mu.Unlock()
		present := map[*leased]func() following.Changes{}
		for _, c := range s.copies {
			present[c] = func() following.Changes { return c.informer.Follow(c.key.String()) }
		}
		return present
	})
}

// Samples implements [metrics.Reporter]. Each leased copy reports under its own name.
func (s *Set) Samples(string) iter.Seq[metrics.Sample] {
	return func(yield func(metrics.Sample) bool) {
		for _, c := range s.Status() {
			for sample := range c.Status.Samples(c.Name) {
				if !yield(sample) {
					return
				}
			}
		}
	}
}

// Samples yields the numbers of a Status, and those of its reflector, under the informer's name.
// Handlers of one name are summed: the greatest lag, the sum of counts.
func (s Status) Samples(name string) iter.Seq[metrics.Sample] {
	samples := []metrics.Sample{objects.Of(float64(s.Objects), name)}
	if !s.Drift.At.IsZero() {
		samples = append(samples, drift.Of(float64(s.Drift.Count), name))
	}
	for handler, h := range joined(s.Handlers) {
		samples = append(samples,
			handlers.Of(float64(h.count), name, handler),
			synced.Of(metrics.Truth(h.Synced), name, handler),
			lagEvents.Of(float64(h.Lag.Events), name, handler),
			lagSeconds.Of(h.Lag.Age.Seconds(), name, handler),
			failed.Of(float64(h.failed), name, handler),
			delivered.Of(float64(h.Delivered), name, handler),
			differences.Of(float64(h.Differences), name, handler))
	}
	return slices.Values(slices.AppendSeq(samples, s.Status.Samples(name)))
}

type sum struct {
	HandlerStatus
	count, failed int
}

// joined has one entry per name, since a duplicate series fails the whole scrape. Unnamed handlers
// share an entry: those that come and go must not make new series.
func joined(all []HandlerStatus) map[string]sum {
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
