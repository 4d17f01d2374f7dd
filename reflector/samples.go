package reflector

import (
	"iter"
	"slices"

	"github.com/tributary-go/tributary/internal/following"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/store"
)

var family = metrics.Family{Prefix: "tributary_reflector_", Label: "reflector"}

var (
	synced        = family.Gauge("synced", "1 once the store has held a whole state of the server.")
	mayBeOld      = family.Gauge("may_be_old", "1 while the first state, read from a cache on request, is not proven to be the newest.")
	retryAt       = family.Gauge("retry_timestamp_seconds", "When the next request is made, while one is waited for.")
	lastContact   = family.Gauge("last_contact_timestamp_seconds", "When the server was last heard.")
	lastEvent     = family.Gauge("last_event_timestamp_seconds", "When the last object or event came, bookmarks apart.")
	progress      = family.Gauge("last_progress_timestamp_seconds", "When the resource version last moved.")
	failing       = family.Gauge("failing", "1 while something is wrong; the class says what.", "class")
	stale         = family.Gauge("stale_objects", "Objects kept in their last good state.")
	skippedTotal  = family.Counter("skipped_objects_total", "Objects and events that could not be decoded or stored.")
	unplacedTotal = family.Counter("unplaced_events_total", "Events whose resource version contradicts the stream's.")
	receivedTotal = family.Counter("events_total", "Events received.")
	failingSince  = family.Gauge("failing_since_timestamp_seconds", "Since when something is wrong.")
	bytesTotal    = family.Counter("received_bytes_total", "Bytes of the objects received, as they are on the wire.")
	sharedTotal   = family.Counter("shared_bytes_total", "Bytes of these that were equal to known parts, and not decoded again.")
)

// Samples implements [metrics.Reporter].
func (r *Reflector[T]) Samples(name string) iter.Seq[metrics.Sample] { return r.Status().Samples(name) }

// Follow implements [metrics.Follower]. If the store has no snapshots, there are no changes.
func (r *Reflector[T]) Follow(name string) (changes func() iter.Seq[metrics.Change]) {
	copied, ok := r.store.(store.Snapshotter[T])
	if !ok || r.missing != nil {
		return func() iter.Seq[metrics.Change] { return func(func(metrics.Change) bool) {} }
	}
	return following.Snapshots(name, copied.Snapshot)
}

// Samples are the numbers of a Status, under the name of its reflector. Times are seconds since
// 1970, and left out if they are zero.
func (s Status) Samples(name string) iter.Seq[metrics.Sample] {
	samples := []metrics.Sample{
		synced.Of(metrics.Truth(s.Synced), name),
		mayBeOld.Of(metrics.Truth(s.MayBeOld), name),
		stale.Of(float64(s.Stale), name),
		skippedTotal.Of(float64(s.Skipped), name),
		unplacedTotal.Of(float64(s.Unplaced), name),
		receivedTotal.Of(float64(s.Events), name),
	}
	samples = retryAt.AppendTime(samples, s.RetryAt, name)
	samples = lastContact.AppendTime(samples, s.LastContact, name)
	samples = lastEvent.AppendTime(samples, s.LastEvent, name)
	samples = progress.AppendTime(samples, s.LastProgress, name)
	if s.Err != nil {
		samples = append(samples, failing.Of(1, name, string(s.Class)))
		samples = failingSince.AppendTime(samples, s.Since, name)
	}
	if s.Sharing.Bytes > 0 {
		samples = append(samples, bytesTotal.Of(float64(s.Sharing.Bytes), name), sharedTotal.Of(float64(s.Sharing.Shared), name))
	}
	return slices.Values(samples)
}
