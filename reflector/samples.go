package reflector

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tributary-go/tributary/internal/causes"
	"github.com/tributary-go/tributary/internal/following"
	"github.com/tributary-go/tributary/metrics"
)

var table = metrics.NewTable([]string{"reflector"},
	metrics.Gauge("tributary_reflector_synced", "1 once the store has held a whole state of the server.", func(s Status) bool { return s.Synced }),
	metrics.When(func(s Status) bool { return s.Verdict(0).Class != OK },
		metrics.By("class", func(s Status) map[string]bool { return map[string]bool{string(s.Verdict(0).Class): true} },
			metrics.Gauge("tributary_reflector_not_right", "1 while the copy is not right, whatever the age of its proof; the class says why.", metrics.Itself[bool]))),
	metrics.Gauge("tributary_reflector_proven_timestamp_seconds", "The moment of which the copy is proven to be the server's state.", func(s Status) time.Time { return s.ProvenAt }),
	metrics.Gauge("tributary_reflector_unusable_objects", "Objects since the newest list, itself included, that could not be decoded or stored.", func(s Status) int { return s.Unusable }),
	metrics.Gauge("tributary_reflector_retry_timestamp_seconds", "When the next request is made, while one is waited for.", func(s Status) time.Time { return s.RetryAt }),
	metrics.Gauge("tributary_reflector_last_contact_timestamp_seconds", "When the server was last heard.", func(s Status) time.Time { return s.LastContact }),
	metrics.Gauge("tributary_reflector_last_event_timestamp_seconds", "When the last object or event came, bookmarks apart.", func(s Status) time.Time { return s.LastEvent }),
	metrics.Gauge("tributary_reflector_last_progress_timestamp_seconds", "When the resource version last moved.", func(s Status) time.Time { return s.LastProgress }),
	metrics.When(func(s Status) bool { return s.Err != nil },
		metrics.By("class", func(s Status) map[string]bool { return map[string]bool{string(s.Class): true} },
			metrics.Gauge("tributary_reflector_failing", "1 while something is wrong; the class says what.", metrics.Itself[bool])),
		metrics.Gauge("tributary_reflector_failing_since_timestamp_seconds", "Since when something is wrong.", func(s Status) time.Time { return s.Since })),
	metrics.Gauge("tributary_reflector_stale_objects", "Objects kept in their last good state.", func(s Status) int { return s.Stale }),
	metrics.Counter("tributary_reflector_skipped_objects_total", "Objects and events that could not be decoded or stored.", func(s Status) int { return s.Skipped }),
	metrics.Counter("tributary_reflector_unplaced_events_total", "Events whose resource version contradicts the stream's.", func(s Status) int { return s.Unplaced }),
	metrics.Counter("tributary_reflector_events_total", "Events received.", func(s Status) int { return s.Events }),
	metrics.When(func(s Status) bool { return s.Sharing.Bytes > 0 },
		metrics.Counter("tributary_reflector_received_bytes_total", "Bytes of the objects received, as they are on the wire.", func(s Status) uint64 { return s.Sharing.Bytes }),
		metrics.Counter("tributary_reflector_shared_bytes_total", "Bytes of these that were equal to known parts, and not decoded again.",
			func(s Status) uint64 { return s.Sharing.Shared })),
)

// Samples implements [metrics.Reporter].
func (r *Reflector[T]) Samples(name string) iter.Seq[metrics.Sample] { return r.Status().Samples(name) }

// Follow implements [metrics.Follower]. If the store has no snapshots, there are no changes.
func (r *Reflector[T]) Follow(name string) (changes func() iter.Seq[metrics.Change]) {
	return following.Snapshots(name, func() string { return following.Resource(r.source) }, r.content)
}

// Samples are the numbers of a Status, under the name of its reflector. Times are seconds since
// 1970, and left out if they are zero.
func (s Status) Samples(name string) iter.Seq[metrics.Sample] { return slices.Values(table(s, name)) }

// Causes implements [github.com/tributary-go/tributary/metrics.Explainer].
func (r *Reflector[T]) Causes(name string) iter.Seq2[string, error] { return r.Status().Causes(name) }

// Causes yields Err, if there is one, and what the verdict adds to it. A copy that is only not
// synced yet needs no cause; one whose probes fail is going to be stale.
func (s Status) Causes(name string) iter.Seq2[string, error] {
	var all []error
	if s.Err != nil {
		all = append(all, s.Err)
	}
	switch v := s.Verdict(0); {
	case v.Err != nil && v.State() != StateSyncing && (s.Err == nil || !errors.Is(v.Err, s.Err)):
		all = append(all, v.Err)
	case s.Err == nil && s.ProbeErr != nil:
		all = append(all, fmt.Errorf("the last probe: %w", s.ProbeErr))
	}
	return causes.Each(name, all)
}

// Metrics receives a reflector's measurements, on the goroutine of Run: methods must not block.
// Label values are the texts of [Class], so their number is bounded.
type Metrics interface {
	// ListEnded is called for each list, whether it completed or not.
	ListEnded(ListStats)
	// WatchEnded is called for each watch.
	WatchEnded(WatchStats)
}

// ListStats is one list: a LIST with all its pages, or the initial part of a watch list.
type ListStats struct {
	// Cause is why the list was made: [OK] for the first one, else the class of the error, or of
	// the end of a watch, that made it necessary.
	Cause Class
	// WatchList: it was a watch that sends the state first.
	WatchList bool
	// Class is how it ended; [OK] when the store took it.
	Class    Class
	Duration time.Duration
	Items    int
}

// WatchStats is one watch.
type WatchStats struct {
	// Class is how it ended; [Short] is one that brought nothing and ended at once.
	Class    Class
	Duration time.Duration
	Events   int
}
