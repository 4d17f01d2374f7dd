package reflector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"k8s.io/client-go/features"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Reflector keeps one store equal to one collection. Make one with [New] and call Run once; the other methods are
// safe for concurrent use, at any time.
type Reflector[T store.Object] struct {
	source  listwatch.ListerWatcher[T]
	store   store.Store[T]
	options options
	random  func() float64 // in [0, 1)

	status statusKeeper
	synced chan struct{}
	began  atomic.Bool

	// Of the goroutine of Run.
	machine *machine
	open    *openWatch[T] // a watch list that has sent its state and goes on as a watch
	// held is what the store has under a key; nil if the store has no snapshots.
	held      func(key string) (T, bool)
	unordered bool // the newest list came without a version
}

// holder is a source that does not decode what the store holds already.
type holder[T store.Object] interface {
	Holding(held func(key string) (T, bool)) listwatch.ListerWatcher[T]
}

// snapshotter is a store that shows its content.
type snapshotter[T store.Object] interface{ Snapshot() store.Snapshot[T] }

// New makes a reflector that will list and watch source into st. Nothing happens before Run. If st has a Snapshot with
// content of an earlier run, such as a checkpoint's, the first state must be as new as that. The environment's
// KUBE_FEATURE_WatchListClient=false, client-go's switch, turns watch lists off.
func New[T store.Object](source listwatch.ListerWatcher[T], st store.Store[T], optionList ...Option) *Reflector[T] {
	r := &Reflector[T]{source: source, store: st, options: apply(optionList), random: rand.Float64, synced: make(chan struct{})}
	if copied, ok := st.(snapshotter[T]); ok {
		r.held = func(key string) (T, bool) { return copied.Snapshot().Get(key) }
		if source, ok := source.(holder[T]); ok {
			r.source = source.Holding(r.held)
		}
	}
	r.status.now = Status{Phase: Idle, Class: OK}
	refuses, ok := source.(interface{ IsWatchListSemanticsUnSupported() bool })
	r.machine = newMachine(policy{
		pageSize: r.options.pageSize, stopOnFinal: r.options.stopOnFinal,
		noWatchList: ok && refuses.IsWatchListSemanticsUnSupported() || !features.FeatureGates().Enabled(features.WatchListClient),
		cachedFirst: r.options.cachedFirst,
	}, backoff{initial: r.options.backoffInitial, limit: r.options.backoffLimit, random: func() float64 { return r.random() }})
	return r
}

// Run lists and watches until ctx ends, which is no error. It blocks, and everything it started has ended when it
// returns. It fails at once on bad options or a second call, and with [WithFinalErrors] on the errors named there.
func (r *Reflector[T]) Run(ctx context.Context) error {
	if err := r.options.validate(); err != nil {
		return err
	}
	if r.began.Swap(true) {
		return errors.New("reflector: Run was called twice: make a new reflector for each run")
	}
	defer r.enter(Idle)
	defer r.closeOpen()
	if held, ok := r.store.(snapshotter[T]); ok {
		r.machine.begin(held.Snapshot().ResourceVersion())
	}
	return r.run(ctx)
}

// Synced is closed once the store holds a whole state of the server.
func (r *Reflector[T]) Synced() <-chan struct{} { return r.synced }

// WaitSynced blocks until the store holds a whole state of the server. When ctx ends first, the error says what
// stood in the way, and wraps both that and ctx's error.
func (r *Reflector[T]) WaitSynced(ctx context.Context) error {
	select {
	case <-r.synced:
		return nil
	case <-ctx.Done():
	}
	if s := r.Status(); s.Err != nil {
		return fmt.Errorf("reflector: not synced: %w (%w, %d attempts since %s)", context.Cause(ctx), s.Err, s.Attempts,
			s.Since.Format(time.TimeOnly))
	}
	return fmt.Errorf("reflector: not synced: %w", context.Cause(ctx))
}

// Status is the health of the copy now. It never blocks for longer than it takes to copy it.
func (r *Reflector[T]) Status() Status { return r.status.read() }
