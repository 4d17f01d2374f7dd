package refs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/signal"
	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// phase is the state of a name.
type phase uint8

const (
	// idle: nothing is requested; the state may be old.
	idle phase = iota
	// opening: the state is being read, or waits for its turn or for the next attempt.
	opening
	// following: the state is known, and a watch follows it.
	following
	// kept: the object is immutable, and was read.
	kept
)

// entry is one name and its object. The lock of Refs guards it.
//
//	       follow                    state                   immutable
//	idle ----------> opening -----------------> following -----------> kept
//	  ^                 ^   the watch ended        |  |                  |
//	  |                 +--------------------------+  |                  |
//	  |                 +---- a new owner, and a Get -+------------------+
//	  +--- no Get for long, Run ended
type entry[T store.Object] struct {
	name   types.NamespacedName
	space  *space[T]
	owners []types.UID // few: most objects have one or two
	phase  phase
	run    *run // of the present attempt; nil in idle and kept, and if the namespace is watched

	obj     T // nil if there is no such object, or known is false
	known   bool
	version string        // up to which obj is known
	told    string        // the version that the namespace's watch told last; empty: it was deleted
	toldAt  string        // a state has what was told from this version on
	contact time.Time     // the last sign that obj is the server's state
	used    time.Time     // the last Get
	signal  signal.Signal // any of this changed

	// wanted and covered count pairs of an owner and a name: a state is read again if it was asked
	// for before the newest pair.
	wanted, covered uint64

	alarm    reflector.Class // that was counted; empty: none
	failure  *failure        // of the last attempt; nil if there was none, or it was well
	failures int             // attempts in a row
	doubt    bool            // the next state must be the server's newest
	back     bool            // the last answer was older than obj
}

// failure is the reason why a state is not known to be current.
type failure struct {
	class  reflector.Class
	err    error
	at     time.Time
	starts bool // the server was away, and may not have read its roles
}

// run is one attempt to read a state and to follow it.
type run struct {
	*stream.Guard
	ends   *int64        // in so many seconds the server ends the watch
	delay  time.Duration // before the request
	covers uint64        // of entry.wanted
	from   string        // the oldest version that will do; empty: the server's newest
	toldAt string        // of the entry, when the run was made
	lists  bool          // by LIST, and then WATCH
	urgent chan struct{} // closed when a Get waits for the state; nil once the request is sent
	rushed bool          // urgent is closed
	asked  time.Time     // when the request was sent
	read   time.Time     // when the state came
	news   bool          // an event or a bookmark came after the state
}

// heard notes an event after the state. From the first on, the server is known to send some.
func (r *run) heard(now time.Time, liveness time.Duration) {
	if r.Heard(now); !r.news {
		r.news = true
		r.Allow(liveness)
	}
}

func (r *run) rush() {
	if r.urgent != nil && !r.rushed {
		r.rushed = true
		close(r.urgent)
	}
}

// current reports whether the state is the server's, as far as a watch can tell.
func (e *entry[T]) current() bool {
	return e.known && e.covered >= e.wanted &&
		(e.phase == kept || e.phase == following && (e.run != nil || e.space.live()))
}

// immutable reports whether an object never changes while it exists.
func immutable(obj any) bool {
	switch o := obj.(type) {
	case *corev1.Secret:
		return o != nil && o.Immutable != nil && *o.Immutable
	case *corev1.ConfigMap:
		return o != nil && o.Immutable != nil && *o.Immutable
	case *unstructured.Unstructured:
		if o == nil || o.GetAPIVersion() != "v1" || o.GetKind() != "Secret" && o.GetKind() != "ConfigMap" {
			return false
		}
		value, _, _ := unstructured.NestedBool(o.Object, "immutable")
		return value
	}
	return false
}
