package refs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/features"
	"k8s.io/client-go/rest"

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
	r.gate = newGate(r.options)
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
	r.log = reflector.Logger(ctx, r.source.Objects(""), r.options.logger()...)
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
