package refs

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/age"
	"github.com/tributary-go/tributary/internal/causes"
	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
)

// Status is the health of all names at one moment.
type Status struct {
	// Phase is [reflector.Idle] before Run, [reflector.Watching] while it runs, and then
	// [reflector.Stopped].
	Phase reflector.Phase
	// Names have owners.
	Names, Owners int
	// Synced: each name has been read.
	Synced bool
	// Current names have a state that a watch follows, or that never changes. Idle names are not
	// followed: their last Get was long ago. All others are NotRight.
	Current, Idle int
	// NotRight counts the names without a state that is current, by the class of the last failure,
	// of the name or of the server; [reflector.NotSynced] if none has failed.
	NotRight map[reflector.Class]int
	// Objects exist, as far as is known.
	Objects int
	// Watches of names, and of namespaces ([WithNamespaceWatch]), are open or being opened.
	Watches, Namespaces int
	// Server is the class of the failure that keeps all names back, such as
	// [reflector.Unreachable]; [reflector.OK] if the server answers.
	Server reflector.Class
	// LastContact is when the server was last heard about the current name of which it was heard
	// least; zero if all are idle or never change. A server sends a bookmark about once a minute.
	LastContact time.Time
	// Events counts objects and changes, and Bytes is their size, as on the wire. The size of a
	// LIST is not known.
	Events, Bytes uint64

	quiet types.NamespacedName // of LastContact
	why   map[reflector.Class]error
	ended error
}

// String is one line for logs and people.
func (s Status) String() string {
	line := fmt.Sprintf("%d names of %d owners, %d current, %d idle, %d watches", s.Names, s.Owners, s.Current, s.Idle, s.Watches+s.Namespaces)
	if len(s.NotRight) > 0 {
		line += fmt.Sprintf(", not right %v", s.NotRight)
	}
	if s.Server != reflector.OK {
		line += ", server " + string(s.Server)
	}
	return line
}

// Status is the health of all names now. It looks at each name.
func (r *Refs[T]) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Status{
		Phase: reflector.Watching, Names: len(r.names), Owners: len(r.owners), Synced: true,
		NotRight: map[reflector.Class]int{}, Server: reflector.OK, Events: r.events, Bytes: r.bytes, why: map[reflector.Class]error{},
	}
	if s.ended = r.runsLocked(); s.ended != nil {
		if s.Phase = reflector.Idle; r.over.Err() != nil {
			s.Phase = reflector.Stopped
		}
	}
	first := map[reflector.Class]*entry[T]{}
	for _, e := range r.names {
		if e.run != nil {
			s.Watches++
		}
		if e.known && !pointer.None(e.obj) {
			s.Objects++
		}
		s.Synced = s.Synced && e.known
		class := r.judge(e, &s)
		if class == reflector.OK {
			continue
		}
		s.NotRight[class]++
		if f := first[class]; f == nil || before(e.name, f.name) {
			first[class] = e
		}
	}
	for class, e := range first {
		s.why[class] = r.whyNot(e, errNotCurrent)
	}
	for _, space := range r.spaces {
		if space.run != nil {
			s.Namespaces++
		}
	}
	if f := r.gate.failure; f != nil {
		s.Server = f.class
	}
	return s
}

// judge counts a name, and returns why it is not right.
func (r *Refs[T]) judge(e *entry[T], s *Status) reflector.Class {
	switch {
	case e.phase == idle && e.known:
		s.Idle++
		return reflector.OK
	case e.current():
		s.Current++
		if at := e.lastContact(); e.phase != kept && (s.LastContact.IsZero() || at.Before(s.LastContact)) {
			s.LastContact, s.quiet = at, e.name
		}
		return reflector.OK
	}
	if f := r.trouble(e); f != nil {
		return f.class
	}
	return reflector.NotSynced
}

func before(a, b types.NamespacedName) bool {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
}

// Verdict judges all names together, as [reflector.Status.Verdict] judges a copy. They are right
// while Run runs, if each has a state that is current, or that never changes or is idle, and the
// server was heard from within maxStaleness about each. Zero permits any age.
func (s Status) Verdict(maxStaleness time.Duration) reflector.Verdict {
	switch {
	case s.Phase == reflector.Idle:
		return reflector.Verdict{Class: reflector.NotRun, Err: fmt.Errorf("refs: %w", s.ended)}
	case s.Phase == reflector.Stopped:
		return reflector.Verdict{Class: reflector.Ended, Err: fmt.Errorf("refs: %w", s.ended)}
	}
	for _, class := range s.classes() {
		return reflector.Verdict{Class: class, Err: s.why[class]}
	}
	if silence := age.Of(s.LastContact); maxStaleness > 0 && !s.LastContact.IsZero() && silence > maxStaleness {
		return reflector.Verdict{Class: reflector.Stale, Err: &Error{
			Name: s.quiet, Class: reflector.Stale, Since: s.LastContact,
			Err: fmt.Errorf("nothing heard for %s, allowed are %s", silence.Round(time.Millisecond), maxStaleness),
		}}
	}
	return reflector.Verdict{Class: reflector.OK}
}

// classes are those of NotRight, in order; names that are only not read yet come last.
func (s Status) classes() []reflector.Class {
	all := slices.Sorted(maps.Keys(s.why))
	if i := slices.Index(all, reflector.NotSynced); i >= 0 {
		all = append(slices.Delete(all, i, i+1), reflector.NotSynced)
	}
	return all
}

// Ready returns the error of the [Status.Verdict]: nil if all names are right, and the server was
// heard from within maxStaleness about each. It implements [reflector.Readier].
func (r *Refs[T]) Ready(maxStaleness time.Duration) error {
	return r.Status().Verdict(maxStaleness).Err
}

// trouble is why the state of a name may not be current: the last failure, of the name or of the
// server; nil if there is none.
func (r *Refs[T]) trouble(e *entry[T]) *failure {
	f := r.gate.failure
	if f == nil || e.failure != nil && e.failure.at.After(f.at) {
		return e.failure
	}
	return f
}

// whyNot is an error about a name, with the failure behind it if there is one.
func (r *Refs[T]) whyNot(e *entry[T], err error) error {
	result := &Error{Name: e.name, Class: reflector.OK, Since: e.lastContact(), Err: err}
	if idle := r.runsLocked(); idle != nil {
		result.Err = fmt.Errorf("%w: %w", idle, err)
	} else if f := r.trouble(e); f != nil {
		result.Class, result.Err = f.class, fmt.Errorf("%w (%w)", f.err, err)
	}
	return result
}

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
	if s.ended != nil {
		return causes.Each(name, []error{s.Verdict(0).Err})
	}
	var all []error
	for _, class := range s.classes() {
		if class != reflector.NotSynced {
			all = append(all, s.why[class])
		}
	}
	return causes.Each(name, all)
}
