package reflector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/features"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Reflector keeps one store equal to one collection. Make one with [New] and call Run once; the
// other methods are safe for concurrent use, at any time.
type Reflector[T store.Object] struct {
	source  listwatch.ListerWatcher[T]
	probes  listwatch.ListerWatcher[T] // source for objects to compare: they share no memory
	store   store.Store[T]
	options options
	random  func() float64 // in [0, 1)

	// content is that of the store. It is empty, and has no version, if the store has no snapshots.
	content func() store.Snapshot[T]

	status statusKeeper
	synced chan struct{}
	began  atomic.Bool
	over   context.Context         // ends with Run
	end    context.CancelCauseFunc // of over: the cause is Run's error, or errEnded
	// missing is an error if New was given no source or no store.
	missing error

	log       logr.Logger
	prober    prober
	origin    *origin
	alarmed   atomic.Bool                  // the present failure was logged as an error
	told      atomic.Pointer[Class]        // of the verdict that the log has
	bookmarks atomic.Bool                  // this server sends them
	watching  atomic.Pointer[stream.Guard] // of the open watch
	doubts    atomic.Pointer[error]        // the newest, until Run takes it in
	distrusts atomic.Bool                  // the list under way decodes every object, held or not

	// Of the prober's goroutine.
	finder    finder[T]         // nil if the source cannot ask for single objects
	namespace string            // of the object that was asked for last
	noSingles int               // so many probes ask for none: the server has refused one
	absent    map[string]absent // by key; nil if there was none
	sweep     sweep

	// Of the goroutine of Run.
	machine *machine
	// held finds an object in the store; nil if the store has no snapshots.
	held      func(key string) (T, bool)
	sharing   func() listwatch.SharingStats // nil if the source has none
	unordered bool                          // the newest list came without a version
	resumed   bool                          // the state is that of an earlier run
}

// getter is a store that finds an object without a snapshot, which would make the next write copy.
type getter[T store.Object] interface {
	Get(key string) (T, bool)
}

// New makes a reflector that will list and watch source into st. Nothing happens before Run. If st
// has a Snapshot with content of an earlier run, such as a checkpoint's, the first state must be as
// new as that. The environment's KUBE_FEATURE_WatchListClient=false, client-go's switch, turns
// watch lists off. A source or store that is nil is an error of Run.
func New[T store.Object](source listwatch.ListerWatcher[T], st store.Store[T], optionList ...Option) *Reflector[T] {
	r := &Reflector[T]{source: source, store: st, options: apply(optionList), random: rand.Float64, synced: make(chan struct{})}
	r.over, r.end = context.WithCancelCause(context.Background())
	switch { // nothing is asked of a nil pointer: it would panic far from here
	case null.Is(source):
		r.missing, r.source, source = errors.New("reflector: New: the source is nil"), nil, nil
	case null.Is(st):
		r.missing, r.store, st = errors.New("reflector: New: the store is nil"), nil, nil
	}
	r.probes = source
	if lw, ok := source.(*listwatch.ListWatch[T]); ok {
		r.probes = lw.Unshared()
	}
	if source, ok := source.(interface{ Sharing() listwatch.SharingStats }); ok {
		r.sharing = source.Sharing
	}
	r.content = func() (none store.Snapshot[T]) { return none }
	if copied, ok := st.(store.Snapshotter[T]); ok {
		r.content = copied.Snapshot
		r.held = func(key string) (T, bool) { return copied.Snapshot().Get(key) }
		if quick, ok := st.(getter[T]); ok {
			r.held = quick.Get
		}
		if source, ok := source.(listwatch.Holder[T]); ok {
			r.source = source.Holding(r.vouched)
		}
	}
	r.status.logged = map[Class]time.Time{}
	r.status.now = Status{Phase: Idle, Class: OK, ProofInterval: r.options.proof}
	r.prober.every, r.prober.probe, r.prober.hears = r.options.proof, r.probe, r.hears
	r.prober.random = func() float64 { return r.random() }
	watchLists := watchlist.Supported(source) && features.FeatureGates().Enabled(features.WatchListClient)
	r.machine = newMachine(r.options, watchLists, func() float64 { return r.random() })
	return r
}

// vouched is held for a source that does not decode again what is held. A list that follows a
// contradiction decodes all: the bytes may be the same, and a program has written into the object.
func (r *Reflector[T]) vouched(key string) (obj T, ok bool) {
	if r.distrusts.Load() {
		return obj, false
	}
	return r.held(key)
}

// Run lists and watches until ctx ends, which is no error. It blocks, and everything it started has
// ended when it returns. It fails at once on a nil source or store, on bad options or a second
// call, and with [WithFinalErrors] on the errors named there.
func (r *Reflector[T]) Run(ctx context.Context) error {
	if r.began.Swap(true) {
		return errors.New("reflector: Run was called twice: make a new reflector for each run")
	}
	err := r.runOnce(ctx)
	r.status.change(func(s *Status) { *s = s.Ended(err, time.Now()) })
	if err != nil {
		r.announce()
		r.end(err)
	}
	r.end(errEnded)
	return err
}

func (r *Reflector[T]) runOnce(ctx context.Context) error {
	r.log = Logger(ctx, r.source, func(o *options) { o.log = r.options.log })
	if r.missing != nil {
		return r.missing
	}
	if err := r.options.validate(); err != nil {
		return err
	}
	free, err := keeps(r.store)
	if err != nil {
		return err
	}
	defer free()
	r.origin = shareProbes(r.source)
	ctx, cancel := context.WithCancel(ctx)
	defer r.prober.stop()
	defer cancel()
	r.holds(r.content().ResourceVersion())
	r.finds(ctx)
	r.prober.start(ctx)
	defer r.origin.join(&r.prober)()
	return r.run(ctx)
}

// holds takes in the version of the content that the store has before the first request.
func (r *Reflector[T]) holds(version string) {
	r.machine.held.version = version
	if r.resumed = r.options.resume && version != "" && version != "0"; !r.resumed {
		return
	}
	r.machine.goOn()
	r.bookmarks.Store(true)
	r.status.change(func(s *Status) { s.Synced, s.ResourceVersion = true, version })
	r.status.interrupted(time.Now())
	close(r.synced)
}

// Synced is closed once the store holds a whole state of the server.
func (r *Reflector[T]) Synced() <-chan struct{} { return r.synced }

// WaitSynced blocks until the store holds a whole state of the server. When ctx ends first, the
// error says what stood in the way, such as a Run that was never called, and wraps both that and
// ctx's error. When Run fails or ends first, WaitSynced fails at once and wraps Run's error.
func (r *Reflector[T]) WaitSynced(ctx context.Context) error {
	select {
	case <-r.synced:
		return nil
	case <-ctx.Done():
	case <-r.over.Done():
	}
	cause := context.Cause(ctx)
	if cause == nil {
		cause = context.Cause(r.over)
	}
	s := r.Status()
	select {
	case <-r.synced: // more than one came true
		return nil
	default:
	}
	switch {
	case !r.began.Load():
		return fmt.Errorf("reflector: not synced: nobody has called Run: %w", cause)
	case s.Err != nil && !errors.Is(cause, s.Err):
		return fmt.Errorf("reflector: not synced: %w (%w, %d attempts since %s)", cause, s.Err, s.Attempts,
			s.Since.Format(time.TimeOnly))
	}
	return fmt.Errorf("reflector: not synced: %w", cause)
}

var errEnded = errors.New("Run has ended")

// Status is the health of the copy now. It never blocks for longer than it takes to copy it.
func (r *Reflector[T]) Status() Status {
	s := r.status.read()
	if r.sharing != nil {
		s.Sharing = r.sharing()
	}
	return s
}

// keepers has the stores that a reflector keeps now: two would undo each other's lists.
var keepers sync.Map

// keeps claims a store for one run. A store that is no pointer has no identity to claim.
func keeps(st any) (free func(), err error) {
	if reflect.ValueOf(st).Kind() != reflect.Pointer {
		return func() {}, nil
	}
	if _, taken := keepers.LoadOrStore(st, true); taken {
		return nil, errors.New("reflector: another reflector keeps this store: give each its own, or join several collections by informer.NewUnion")
	}
	return func() { keepers.Delete(st) }, nil
}
