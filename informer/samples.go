package informer

import (
	"iter"
	"slices"
	"time"

	"github.com/tributary-go/tributary/internal/following"
	"github.com/tributary-go/tributary/metrics"
)

var table = metrics.NewTable([]string{"informer"},
	metrics.Gauge("tributary_informer_objects", "Objects held.", func(s Status) int { return s.Objects }),
	metrics.When(func(s Status) bool { return !s.Drift.At.IsZero() },
		metrics.Gauge("tributary_informer_drift_objects", "Objects that differ from the server's, as the last verification found; 0 once a relist has healed them.", present)),
	metrics.By("handler", func(s Status) map[string]sum { return joined(s.Handlers) },
		metrics.Gauge("tributary_informer_handlers", "Handlers of this name.", func(h sum) int { return h.count }),
		metrics.Gauge("tributary_informer_handler_synced", "1 once the handlers have returned from their initial lists.", func(h sum) bool { return h.Synced }),
		metrics.Gauge("tributary_informer_handler_lag_events", "Changes, and objects of its initial list, that the handler has not returned from yet.", func(h sum) uint64 { return h.Lag.Events }),
		metrics.Gauge("tributary_informer_handler_lag_seconds", "How long the oldest of these has waited; until the handler is synced, since its initial list began.", func(h sum) time.Duration { return h.Lag.Age }),
		metrics.Gauge("tributary_informer_handlers_failed", "Handlers that have ended with a panic.", func(h sum) int { return h.failed }),
		metrics.Counter("tributary_informer_handler_events_total", "Events told, in whole batches.", func(h sum) uint64 { return h.Delivered }),
		metrics.Counter("tributary_informer_handler_differences_total", "How often the handler fell behind the ring and was told a difference.", func(h sum) uint64 { return h.Differences }),
	),
)

// Samples implements [metrics.Reporter].
func (i *shared[T]) Samples(name string) iter.Seq[metrics.Sample] { return i.Status().Samples(name) }

// Follow implements [metrics.Follower].
func (i *shared[T]) Follow(name string) (changes func() iter.Seq[metrics.Change]) {
	return following.Snapshots(name, i.resource, i.Snapshot)
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
	var all []metrics.Sample
	for _, c := range s.Status() {
		all = slices.AppendSeq(all, c.Status.Samples(c.Name))
	}
	return slices.Values(all)
}

// Samples yields the numbers of a Status, and those of its reflector, under the informer's name.
// Handlers of one name are summed: the greatest lag, the sum of counts.
func (s Status) Samples(name string) iter.Seq[metrics.Sample] {
	return slices.Values(slices.AppendSeq(table(s, name), s.Status.Samples(name)))
}

// present is the number of objects that differ now.
func present(s Status) int {
	if s.Drift.Healed {
		return 0
	}
	return s.Drift.Count
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
