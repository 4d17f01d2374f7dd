package refs

import (
	"iter"
	"slices"
	"time"

	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
)

var table = metrics.NewTable([]string{"refs"},
	metrics.Gauge("tributary_refs_synced", "1 while each name has been read.", func(s Status) bool { return s.Synced }),
	metrics.Gauge("tributary_refs_names", "Names that have an owner.", func(s Status) int { return s.Names }),
	metrics.Gauge("tributary_refs_owners", "Owners of names.", func(s Status) int { return s.Owners }),
	metrics.Gauge("tributary_refs_current_names", "Names with a state that is followed, or never changes.", func(s Status) int { return s.Current }),
	metrics.Gauge("tributary_refs_idle_names", "Names that are not followed, since nothing reads them.", func(s Status) int { return s.Idle }),
	metrics.By("class", Status.notRight,
		metrics.Gauge("tributary_refs_not_right", "Names that are not right, whatever the age of their state; the class says why.", metrics.Itself[int])),
	metrics.Gauge("tributary_refs_objects", "Objects held.", func(s Status) int { return s.Objects }),
	metrics.Gauge("tributary_refs_watches", "Watches of names and of namespaces, open or being opened.", func(s Status) int { return s.Watches + s.Namespaces }),
	metrics.Gauge("tributary_refs_last_contact_timestamp_seconds", "When the server was last heard about the name of which it was heard least.",
		func(s Status) time.Time { return s.LastContact }),
	metrics.Counter("tributary_refs_events_total", "Objects and changes received.", func(s Status) uint64 { return s.Events }),
	metrics.Counter("tributary_refs_received_bytes_total", "Bytes of these, as they are on the wire.", func(s Status) uint64 { return s.Bytes }),
)

// notRight counts names by the class of their verdict. Before Run and after it, that is the same
// one for all.
func (s Status) notRight() map[string]int {
	if s.ended != nil {
		return map[string]int{string(s.Verdict(0).Class): s.Names}
	}
	counts := map[string]int{}
	for class, n := range s.NotRight {
		counts[string(class)] = n
	}
	return counts
}

// Samples implements [metrics.Reporter]. The name stands for all names together: no series has the
// name of an object.
func (r *Refs[T]) Samples(name string) iter.Seq[metrics.Sample] { return r.Status().Samples(name) }

// Samples are the numbers of a Status. Times are seconds since 1970, and left out if they are zero.
func (s Status) Samples(name string) iter.Seq[metrics.Sample] { return slices.Values(table(s, name)) }

// Causes implements [metrics.Explainer]: for each class, the error of the first name that is not
// right. Names that are only not read yet need no cause.
func (r *Refs[T]) Causes(name string) iter.Seq2[string, error] {
	s := r.Status()
	return func(yield func(string, error) bool) {
		if s.ended != nil {
			yield(name, s.Verdict(0).Err)
			return
		}
		for _, class := range s.classes() {
			if class != reflector.NotSynced && !yield(name, s.why[class]) {
				return
			}
		}
	}
}
