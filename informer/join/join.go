package join

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/store"
)

// Collection is a part of a view: an [informer.Informer], a [informer.Lease] or a [informer.Union].
type Collection[T store.Object] interface {
	store.Snapshotter[T]
	AddHandler(handle func(informer.Event[T]), options ...informer.HandlerOption) (*informer.Handler[T], error)
	AddMetaHandler(handle func(informer.Event[store.Object]), options ...informer.HandlerOption) (*informer.Handler[T], error)
	WaitSynced(context.Context) error
	Ready(maxStaleness time.Duration) error
	Done() <-chan struct{}
}

// View is several collections that are read together. The zero value has none: [Add] adds each
// before Run is called.
type View struct{ parts []part }

// part is a collection of any type.
type part struct {
	name       string
	state      func() any // a store.Snapshot
	differ     func(before, after any) bool
	waitSynced func(context.Context) error
	ready      func(maxStaleness time.Duration) error
	follow     func(changed chan<- struct{}) (stop func(), err error)
	done       <-chan struct{}
}

// Part reads one collection of a view.
type Part[T store.Object] struct {
	view  *View
	index int
}

// Moment is the state of a view's collections at one instant. It never changes, and any number of
// goroutines may read it.
type Moment struct {
	view        *View
	now, before []any
}

// Add adds a collection to a view. The program runs the collection itself.
func Add[T store.Object](v *View, collection Collection[T]) Part[T] {
	v.parts = append(v.parts, part{
		name:  reflect.TypeFor[T]().String(),
		state: func() any { return collection.Snapshot() },
		differ: func(before, after any) bool {
			for range store.Diff(before.(store.Snapshot[T]), after.(store.Snapshot[T])) {
				return true
			}
			return false
		},
		waitSynced: collection.WaitSynced,
		ready:      collection.Ready,
		follow: func(changed chan<- struct{}) (func(), error) {
			h, err := collection.AddMetaHandler(func(informer.Event[store.Object]) {
				select {
				case changed <- struct{}{}:
				default:
				}
			}, informer.WithName("join"))
			if err != nil {
				return nil, err
			}
			return h.Remove, nil
		},
		done: collection.Done(),
	})
	return Part[T]{v, len(v.parts) - 1}
}

// In returns the collection at a moment. It panics if the moment is of another view.
func (p Part[T]) In(m Moment) store.Snapshot[T] { return p.of(m, m.now) }

// Changes yields the changes of the collection since the moment before, as [store.Diff] does; at
// the first moment, each object as an addition.
func (p Part[T]) Changes(m Moment) iter.Seq[store.Change[T]] {
	var before store.Snapshot[T]
	if m.before != nil {
		before = p.of(m, m.before)
	}
	return store.Diff(before, p.In(m))
}

func (p Part[T]) of(m Moment, states []any) store.Snapshot[T] {
	if m.view != p.view {
		panic("join: this moment is of another view")
	}
	return states[p.index].(store.Snapshot[T])
}

// Run calls tell with each moment until ctx ends, which is no error. It blocks, and tell runs on
// its goroutine. It may be called more than once. If a collection ends, it fails with an error that
// names the type and wraps [informer.ErrStopped]; Run of the collection has the cause. Close a
// lease after Run has returned.
func (v *View) Run(ctx context.Context, tell func(Moment)) error {
	if len(v.parts) == 0 {
		return errors.New("join: the view has no collections: call Add before Run")
	}
	watching, fail := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer fail(nil)
	changed := make(chan struct{}, 1) // one stands for any number: a moment has them all
	for _, p := range v.parts {
		stop, err := p.follow(changed)
		if err != nil {
			return fmt.Errorf("join: %s: %w", p.name, err)
		}
		defer stop()
		running.Go(func() {
			select {
			case <-p.done:
				fail(fmt.Errorf("join: %s: %w", p.name, informer.ErrStopped))
			case <-watching.Done():
			}
		})
	}
	err := v.tell(watching, changed, tell)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// tell calls tell with each moment until ctx ends, and returns why it did.
func (v *View) tell(ctx context.Context, changed <-chan struct{}, tell func(Moment)) error {
	for _, p := range v.parts {
		if err := p.waitSynced(ctx); err != nil {
			return fmt.Errorf("join: %s: %w", p.name, err)
		}
	}
	var told []any
	for {
		now := v.instant()
		if told == nil || v.differ(told, now) {
			tell(Moment{view: v, now: now, before: told})
		}
		told = now
		select {
		case <-changed:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// Ready returns nil if each collection of the view is right, as [informer.Informer.Ready] says;
// otherwise the error names the types of the others, each with the cause. It does not block.
func (v *View) Ready(maxStaleness time.Duration) error {
	var all []error
	for _, p := range v.parts {
		if err := p.ready(maxStaleness); err != nil {
			all = append(all, fmt.Errorf("join: %s: %w", p.name, err))
		}
	}
	return errors.Join(all...)
}

func (v *View) differ(before, after []any) bool {
	for i, p := range v.parts {
		if p.differ(before[i], after[i]) {
			return true
		}
	}
	return false
}

// instant returns the states of all collections at one instant: a collection that is the same
// before and after all were read was the same in between.
func (v *View) instant() []any {
	states := v.states()
	for {
		again := v.states()
		if slices.Equal(states, again) {
			return states
		}
		states = again
	}
}

func (v *View) states() []any {
	states := make([]any, len(v.parts))
	for i, p := range v.parts {
		states[i] = p.state()
	}
	return states
}
