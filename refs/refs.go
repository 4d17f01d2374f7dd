package refs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/features"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/internal/signal"
	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// Source has the readers of a namespace; an empty namespace stands for cluster scope. [FromClient]
// makes a source. The functions are called under a lock: they must not block, nor call [Refs].
type Source[T store.Object] struct {
	// Objects reads whole objects. [Refs] adds the field selector metadata.name to each request.
	Objects func(namespace string) listwatch.ListerWatcher[T]
	// Metadata reads the metadata of all objects, for [WithNamespaceWatch]. It may be nil.
	Metadata func(namespace string) listwatch.ListerWatcher[*metav1.PartialObjectMetadata]
}

// FromClient reads objects of a resource by a REST client, as [listwatch.FromClient] does. Each
// object is decoded into memory of its own. Options of selection do not apply: a field selector
// would take the place of the name.
//
// FromClient panics as listwatch.FromClient does.
func FromClient[O any, T interface {
	*O
	store.Object
}](client rest.Interface, resource string, optionList ...listwatch.Option) Source[T] {
	alone := append([]listwatch.Option{listwatch.WithoutSharing()}, optionList...)
	listwatch.FromClient[O, T](client, resource, alone...) // panics here rather than in Run
	in := func(namespace string) []listwatch.Option {
		return append(alone[:len(alone):len(alone)], listwatch.InNamespace(namespace))
	}
	return Source[T]{
		Objects: func(namespace string) listwatch.ListerWatcher[T] {
			return listwatch.FromClient[O, T](client, resource, in(namespace)...)
		},
		Metadata: func(namespace string) listwatch.ListerWatcher[*metav1.PartialObjectMetadata] {
			return listwatch.FromClient[metav1.PartialObjectMetadata](client, resource, append(in(namespace), listwatch.DropManagedFields())...)
		},
	}
}

// Refs holds the objects that owners refer to by name. Make one with [New] and call Run once. All
// methods are safe for concurrent use, at any time.
type Refs[T store.Object] struct {
	source  Source[T]
	options options
	gate    *gate
	began   atomic.Bool
	over    context.Context         // ends with Run
	end     context.CancelCauseFunc // of over: the cause is an [ErrStopped] with Run's error

	// Of Run.
	log       logr.Logger
	followers sync.WaitGroup

	mu      sync.Mutex      // guards the fields below, and all entries
	running context.Context // nil before Run and after it
	owners  map[types.UID][]*entry[T]
	names   map[types.NamespacedName]*entry[T]
	spaces  map[string]*space[T]
	readers map[*reader[T]]struct{}
	alarms  map[reflector.Class]int // names by the class that they fail with
	asked   uint64                  // counts the pairs of an owner and a name
	// events and bytes count the objects that were received.
	events, bytes uint64
	// rest has LIST stand in for watch lists, which the server does not answer.
	rest stream.Rest
}

// New makes an empty set of references. Nothing is requested before Run.
func New[T store.Object](source Source[T], optionList ...Option) *Refs[T] {
	if source.Objects == nil {
		panic("refs: New: the source has no Objects: make it with FromClient")
	}
	r := &Refs[T]{
		source: source, options: apply(optionList),
		owners: map[types.UID][]*entry[T]{}, names: map[types.NamespacedName]*entry[T]{},
		spaces: map[string]*space[T]{}, readers: map[*reader[T]]struct{}{}, alarms: map[reflector.Class]int{},
	}
	if !features.FeatureGates().Enabled(features.WatchListClient) {
		r.rest.Never()
	}
	r.gate = newGate(r.options, &r.mu)
	r.over, r.end = context.WithCancelCause(context.Background())
	return r
}

// Run follows the names until ctx ends, which is no error. It blocks, and everything that it
// started has ended when it returns. It fails at once on bad options and on a second call.
func (r *Refs[T]) Run(ctx context.Context) error {
	if r.began.Swap(true) {
		return errors.New("refs: Run was called twice: make a new Refs for each run")
	}
	defer r.end(ErrStopped)
	if err := r.options.validate(); err != nil {
		r.end(fmt.Errorf("%w: %w", ErrStopped, err))
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.log = reflector.Logger(ctx, r.source.Objects(""), r.options.log...)
	r.start(ctx)
	var feeds sync.WaitGroup
	for _, feed := range r.options.feeds {
		feeds.Go(func() { feed(ctx, r.SetOwner) })
	}
	r.patrol(ctx)
	feeds.Wait()
	r.mu.Lock()
	r.running = nil
	for _, e := range r.names {
		r.leave(e, idle, errEnded)
	}
	for _, s := range r.spaces {
		s.end(errEnded)
	}
	r.mu.Unlock()
	r.followers.Wait()
	return nil
}

// runsLocked returns an error if no name is followed, since Run has not begun or has ended.
func (r *Refs[T]) runsLocked() error {
	switch {
	case r.over.Err() != nil:
		return context.Cause(r.over)
	case r.running == nil:
		return errNotRun
	}
	return nil
}

// start begins to follow all names that were given before Run.
func (r *Refs[T]) start(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = ctx
	for _, e := range r.names {
		r.follow(e)
	}
	for _, s := range r.spaces {
		r.weigh(s)
	}
}

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
	followed // without a run in idle and kept, and if the namespace is watched
	name     types.NamespacedName
	space    *space[T]
	owners   []types.UID // few: most objects have one or two
	phase    phase

	obj    T // nil if there is no such object, or known is false
	known  bool
	told   string        // the version that the namespace's watch told last; empty: it was deleted
	toldAt string        // a state has what was told from this version on
	used   time.Time     // the last Get
	signal signal.Signal // any of this changed

	// wanted and covered count pairs of an owner and a name: a state is read again if it was asked
	// for before the newest pair.
	wanted, covered uint64

	alarm   reflector.Class // that was counted; empty: none
	failure *failure        // of the last attempt; nil if there was none, or it was well
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
	turn   *turn         // nil before the request, and once the state has come
	asked  time.Time     // when the request was sent
	read   time.Time     // when the state came
	news   bool          // an event or a bookmark came after the state
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
