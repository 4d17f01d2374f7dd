package informer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// Informer keeps a copy of one collection and tells handlers what changes in it. Make one with [New] and call Run once;
// the other methods are safe for concurrent use, at any time.
type Informer[T store.Object] struct {
	source    listwatch.ListerWatcher[T] // nil in a union
	options   options
	optionErr error
	journal   *journal[T]
	copier    copier
	// complete is up to which resource version the store is complete, and who is at that.
	complete func() (resourceVersion, who string)
	over     context.Context         // ends when Run ends, or has failed to begin
	finish   context.CancelCauseFunc // of over: the cause is Run's error, or ErrStopped

	mu       sync.Mutex
	phase    phase
	handlers []*Handler[T]
	numbered int                     // handlers that have been named by number
	fail     context.CancelCauseFunc // ends Run; set while it runs
	failure  error                   // the first panic that ended it
	drift    Drift                   // of the last verification that came to a result
	driftErr error                   // of the last verification

	running sync.WaitGroup // what Run waits for; grows under mu only
}

// copier writes into the journal: a reflector, or those of a union.
type copier interface {
	Run(context.Context) error
	Synced() <-chan struct{}
	WaitSynced(context.Context) error
	Ready(maxStaleness time.Duration) error
	Status() reflector.Status
}

type phase uint8

const (
	idle phase = iota
	running
	ended
)

// New makes an informer that will list and watch source. Nothing happens before Run, which also reports what is wrong with
// the source and the options.
func New[T store.Object](source listwatch.ListerWatcher[T], optionList ...Option) *Informer[T] {
	i := newInformer[T](optionList)
	if null.Is(source) { // of a nil pointer nothing may be asked
		i.optionErr, source = errors.Join(i.optionErr, errNoSource), nil
	}
	i.source = source
	i.copier = reflector.New(source, i.journal, i.options.reflector...)
	i.complete = func() (string, string) { return i.Snapshot().ResourceVersion(), "the store" }
	return i
}

var errNoSource = errors.New("informer: the source is nil")

func newInformer[T store.Object](optionList []Option) *Informer[T] {
	i := &Informer[T]{options: apply(optionList)}
	i.over, i.finish = context.WithCancelCause(context.Background())
	indexes, err := indexesOf[T](i.options)
	i.optionErr = errors.Join(i.options.validate(), err)
	i.journal = &journal[T]{objects: store.NewIndexer(indexes...), ring: newSharedRing[T](max(1, i.options.ring))}
	return i
}

// Run keeps the copy and tells the handlers, until ctx ends, which is no error. It blocks, and everything it started has
// ended when it returns: it waits for a handler that is at work, and after the end of ctx begins no further event. It
// fails at once on bad options or a second call, with a *[PanicError] on a panic of a handler or of the function given to
// [WithVerification], and otherwise as [reflector.Reflector.Run] does.
func (i *Informer[T]) Run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := i.begin(fail); err != nil {
		return err
	}
	if i.options.verify > 0 {
		i.running.Go(func() { i.verifyRepeatedly(ctx) })
	}
	err := i.copier.Run(ctx)
	fail(nil)
	i.end(err)
	i.running.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failure
}

func (i *Informer[T]) begin(fail context.CancelCauseFunc) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase != idle {
		return errors.New("informer: Run was called twice: make a new informer for each run")
	}
	if i.optionErr != nil {
		i.endLocked(i.optionErr)
		return i.optionErr
	}
	i.phase = running
	i.fail = fail
	for _, h := range i.handlers {
		if !h.started { // a loop over Events runs by itself
			i.startLocked(h)
		}
	}
	return nil
}

func (i *Informer[T]) end(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.endLocked(err)
}

// endLocked ends the handlers, and says why to all who wait. A panic was there before err.
func (i *Informer[T]) endLocked(err error) {
	if i.failure == nil {
		i.failure = err
	}
	if i.phase = ended; i.failure != nil {
		i.finish(i.failure)
	}
	i.finish(ErrStopped)
	for _, h := range i.handlers {
		h.halt()
		if !h.started { // nobody else will close it
			h.started = true
			close(h.done)
		}
	}
}

// Synced is closed once the store holds a whole state of the server. A handler is told of it later, and has a Synced of
// its own.
func (i *Informer[T]) Synced() <-chan struct{} { return i.copier.Synced() }

// WaitSynced blocks until the store holds a whole state of the server. When ctx ends first, the error says what stood in
// the way; nobody having called Run is one such thing. When Run fails or ends first, WaitSynced fails at once with Run's
// error, or with [ErrStopped].
func (i *Informer[T]) WaitSynced(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(i.over, func() { cancel(context.Cause(i.over)) })()
	err := i.copier.WaitSynced(ctx)
	if err != nil && i.source != nil { // its reflector may have ended a moment before Run, which knows why
		<-ctx.Done()
		err = i.copier.WaitSynced(ctx)
	}
	if err != nil && i.isIdle() {
		return fmt.Errorf("informer: not synced: %w: %w", i.notRun(), context.Cause(ctx))
	}
	return err
}

func (i *Informer[T]) isIdle() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.phase == idle
}

// notRun says whose Run it is that nobody has called.
func (i *Informer[T]) notRun() error {
	if i.options.ofSet {
		return errors.New("nobody has called Run of the set")
	}
	return errors.New("nobody has called Run")
}

// Done is closed once Run ends, whatever ended it: handlers are begun no more, and none can be added.
func (i *Informer[T]) Done() <-chan struct{} { return i.over.Done() }

// Ready returns nil when the store holds a whole state of the server and the server was heard from within maxStaleness;
// else what is wrong. An informer can be given to [reflector.ReadyHandler].
func (i *Informer[T]) Ready(maxStaleness time.Duration) error { return i.copier.Ready(maxStaleness) }

// Snapshot is the content of the store now. It takes no lock. It is never behind an event that a handler was told of,
// and may be ahead.
func (i *Informer[T]) Snapshot() store.Snapshot[T] { return i.journal.Snapshot() }

// Status is the health of the copy and of its handlers now. It does not block.
func (i *Informer[T]) Status() Status {
	s := Status{Status: i.copier.Status(), Objects: i.Snapshot().Len()}
	i.mu.Lock()
	defer i.mu.Unlock()
	s.Drift, s.DriftErr = i.drift, i.driftErr
	for _, h := range i.handlers {
		s.Handlers = append(s.Handlers, h.status())
	}
	return s
}

// AddHandler has handle told of every object and every change from now on, before Run or while it runs: first of all
// objects as its initial list, then of what changes. handle is called on one goroutine of its own, one event at a time,
// and may take its time: nobody else waits for it. AddHandler does not block. It fails on a function that is nil and on bad
// options, and with [ErrStopped] after Run has ended.
func (i *Informer[T]) AddHandler(handle func(Event[T]), optionList ...HandlerOption) (*Handler[T], error) {
	h := i.newHandler(optionList)
	h.handle = handle
	switch {
	case handle == nil:
		return nil, errors.New("informer: add a handler: the function is nil")
	case h.options.redelivery < 0:
		return nil, fmt.Errorf("informer: add a handler: WithRedelivery(%s): give a positive duration", h.options.redelivery)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase == ended {
		return nil, fmt.Errorf("informer: add a handler: %w: handlers are added before or while Run runs", ErrStopped)
	}
	i.enlistLocked(h)
	if i.phase == running {
		i.startLocked(h)
	}
	return h, nil
}

// Events yields what a handler would be told, as a loop: the initial list, then changes. The loop's body is the handler,
// on the caller's own goroutine; ending it removes the handler. It waits for Run to begin, and ends with ctx or with Run,
// whose error says why. Each range over it begins anew. [WithSynced] tells a loop that its initial list is complete.
func (i *Informer[T]) Events(ctx context.Context, optionList ...HandlerOption) iter.Seq[Event[T]] {
	return func(yield func(Event[T]) bool) {
		h := i.newHandler(optionList)
		h.started = true
		i.mu.Lock()
		if i.phase == ended {
			i.mu.Unlock()
			return
		}
		i.enlistLocked(h)
		i.mu.Unlock()
		defer i.forget(h)
		defer close(h.done)
		defer context.AfterFunc(ctx, h.halt)()
		h.events(yield)
	}
}

func (i *Informer[T]) newHandler(optionList []HandlerOption) *Handler[T] {
	h := &Handler[T]{
		ring: i.journal.ring, metrics: i.options.metrics, remove: i.forget, over: i.over,
		idle: func() error {
			if i.isIdle() {
				return i.notRun()
			}
			return nil
		},
		halted: make(chan struct{}), synced: make(chan struct{}), done: make(chan struct{}),
	}
	h.halt = sync.OnceFunc(func() { close(h.halted) })
	for _, option := range optionList {
		option(&h.options)
	}
	return h
}

func (i *Informer[T]) enlistLocked(h *Handler[T]) {
	h.name = h.options.name
	if h.name == "" {
		i.numbered++
		h.name = fmt.Sprintf("handler-%d", i.numbered)
	}
	i.handlers = append(i.handlers, h)
}

func (i *Informer[T]) startLocked(h *Handler[T]) {
	h.started = true
	i.running.Go(func() {
		h.run(func(err error) {
			if !h.options.isolated {
				i.failed(err)
			}
		})
	})
}

// forget halts a handler and drops it from the list. It does not wait.
func (i *Informer[T]) forget(h *Handler[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	h.halt()
	i.handlers = slices.DeleteFunc(i.handlers, func(other *Handler[T]) bool { return other == h })
	if !h.started {
		h.started = true
		close(h.done)
	}
}

// removeOwned removes the handlers of an owner: it halts them all, then waits for each.
func (i *Informer[T]) removeOwned(owner any) {
	i.mu.Lock()
	var owned []*Handler[T]
	for _, h := range i.handlers {
		if h.options.owner == owner {
			h.halt()
			owned = append(owned, h)
		}
	}
	i.mu.Unlock()
	for _, h := range owned {
		h.Remove()
	}
}

// failed ends Run with err, unless another error was first.
func (i *Informer[T]) failed(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failure == nil {
		i.failure = err
	}
	i.fail(i.failure)
}
