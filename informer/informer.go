package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/tributary-go/tributary/internal/following"
	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// Informer keeps a copy of one collection and tells handlers of its changes. Make it with [New] and
// call Run once. The other methods are safe for concurrent use, at any time.
type Informer[T store.Object] struct{ *shared[T] }

// shared has the methods that informers, leases and unions share.
type shared[T store.Object] struct {
	source    listwatch.ListerWatcher[T] // nil in a union
	options   options
	optionErr error
	indexes   []store.AnyIndex[T] // of the options
	newStore  storeMaker[T]       // likewise
	objects   *store.Indexer[T]
	ring      *sharedRing // of the objects
	member    *member     // whose objects alone count; nil for all
	copier    copier
	check     func(context.Context) (Drift, error) // Verify
	// complete returns the version up to which the store is complete, and that version's owner.
	complete func() (resourceVersion, owner string)
	resource func() string           // its plural and group; empty if it is unknown
	over     context.Context         // ends when Run ends, or fails to begin
	finish   context.CancelCauseFunc // ends over; the cause is Run's error, or ErrStopped

	mu       sync.Mutex
	phase    phase
	handlers []*handler              // by their numbers
	enlisted uint64                  // the number of the newest handler
	unnamed  int                     // the count of names by number
	fail     context.CancelCauseFunc // ends Run; set while it runs
	failure  error                   // the first panic, or the error that ended Run
	failedAt time.Time
	log      logr.Logger // of Run
	drift    Drift       // of the last successful verification
	driftErr error       // of the last verification
	// driftList is the last list that had begun when the last successful verification ended.
	driftList uint64

	running sync.WaitGroup // Run waits for it; grows under mu only
}

// copier writes into the journal: an informer's reflector, or a union's reflectors.
type copier interface {
	Run(context.Context) error
	Synced() <-chan struct{}
	WaitSynced(context.Context) error
	Status() reflector.Status
	Doubt(reason error)
}

type phase uint8

const (
	idle phase = iota
	running
	ended
)

// New makes an informer that will list and watch source. Nothing happens before Run, which also
// reports errors in the source and the options.
func New[T store.Object](source listwatch.ListerWatcher[T], optionList ...Option) *Informer[T] {
	i := newShared[T](optionList)
	if null.Is(source) { // a nil pointer has no methods to ask
		i.optionErr, source = errors.Join(i.optionErr, errNoSource), nil
	}
	i.source = source
	i.resource = func() string { return following.Resource(source) }
	j := i.newJournal()
	takesNameless(source, j.entries)
	i.copier, i.check = i.follow(source, i.objects, j, nil), i.verify
	i.complete = func() (string, string) { return j.entries.ResourceVersion(), "the store" }
	return &Informer[T]{i}
}

// newJournal makes the store of the copy, and its journal.
func (i *shared[T]) newJournal() *journal {
	i.objects = i.newStore(i.indexes...)
	j := newJournal(max(1, i.options.ring), i.objects.Entries())
	i.ring = j.ring
	return j
}

var errNoSource = errors.New("informer: the source is nil")

func newShared[T store.Object](optionList []Option) *shared[T] {
	i := &shared[T]{options: apply(optionList)}
	i.over, i.finish = context.WithCancelCause(context.Background())
	var badIndexes, badStore error
	i.indexes, badIndexes = indexesOf[T](i.options)
	i.newStore, badStore = storeOf[T](i.options)
	i.optionErr = errors.Join(i.options.validate(), badIndexes, badStore)
	return i
}

// Run keeps the copy and tells the handlers until ctx ends, which is not an error. It blocks.
// Everything that it started has ended when it returns: it waits for a handler that is at work, and
// begins no event after the end of ctx.
//
// It fails at once on bad options or a second call. If a handler, or the function of
// [WithVerification], panics, it fails with a *[PanicError]. The panic is logged with its stack at
// once, while Run waits for the other handlers. Otherwise it fails as
// [reflector.Reflector.Run] does.
func (i *Informer[T]) Run(ctx context.Context) error { return i.run(ctx) }

func (i *shared[T]) run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := i.begin(ctx, fail); err != nil {
		return err
	}
	if i.options.verify > 0 {
		i.running.Go(func() { i.verifyRepeatedly(ctx) })
	}
	err := i.copier.Run(ctx)
	fail(nil)
	i.end(err)
	blocked := time.AfterFunc(blockedAfter, i.sayBlocked)
	i.running.Wait()
	blocked.Stop()
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failure
}

// blockedAfter is how long Run waits for its handlers before it says for which ones.
const blockedAfter = 3 * time.Second

// sayBlocked names the handlers for which Run waits.
func (i *shared[T]) sayBlocked() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, h := range i.handlers {
		select {
		case <-h.done:
		default:
			i.log.Error(errBlocked, "Run has ended, and waits for a handler", "handler", h.name)
		}
	}
}

var errBlocked = errors.New("the handler has not returned from an event")

func (i *shared[T]) begin(ctx context.Context, fail context.CancelCauseFunc) error {
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
	i.log = reflector.Logger(ctx, i.source, i.options.reflector...)
	for _, h := range i.handlers {
		if !h.started { // a loop over Events is already started
			i.startLocked(h)
		}
	}
	return nil
}

func (i *shared[T]) end(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.endLocked(err)
}

// endLocked ends the handlers and wakes all waiters. A panic, noted before, takes precedence over
// err.
func (i *shared[T]) endLocked(err error) {
	i.noteLocked(err)
	if i.phase = ended; i.failure != nil {
		i.finish(i.failure)
	}
	i.finish(ErrStopped)
	for _, h := range i.handlers {
		h.halt()
		if !h.started { // no goroutine will close it
			h.started = true
			close(h.done)
		}
	}
}

// Synced is closed once the store holds a whole state of the server. Handlers are told of that
// state later: each has a Synced of its own.
func (i *shared[T]) Synced() <-chan struct{} { return i.copier.Synced() }

// WaitSynced blocks until the store holds a whole state of the server. If ctx ends first, the error
// gives the cause, such as a Run that was never called. If Run fails or ends first, WaitSynced
// fails at once with Run's error, or with [ErrStopped].
func (i *shared[T]) WaitSynced(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(i.over, func() { cancel(context.Cause(i.over)) })()
	err := i.copier.WaitSynced(ctx)
	if err != nil && i.source != nil {
		// The reflector may end a moment before Run, which knows the cause.
		<-ctx.Done()
		err = i.copier.WaitSynced(ctx)
	}
	if err != nil && i.isIdle() {
		return fmt.Errorf("informer: not synced: %w: %w", i.notRun(), context.Cause(ctx))
	}
	return err
}

func (i *shared[T]) isIdle() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.phase == idle
}

// logger is only for goroutines that Run started, and for those that wait for it.
func (i *shared[T]) logger() logr.Logger {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.log
}

// notRun names the Run that was not called: the informer's or the set's.
func (i *shared[T]) notRun() error {
	if i.options.ofSet {
		return errors.New("nobody has called Run of the set")
	}
	return errors.New("nobody has called Run")
}

// Done is closed once Run ends, for whatever reason. From then on no handler begins, and none can
// be added.
func (i *shared[T]) Done() <-chan struct{} { return i.over.Done() }

// Snapshot returns the present content of the store; see [store.Indexer.Snapshot]. It is never
// behind an event that a handler was told of, and may be ahead.
func (i *shared[T]) Snapshot() store.Snapshot[T] { return i.objects.Snapshot() }

// Get returns the object under key, which [store.Key] makes, as the store has it now. If one object
// is read for each event, Get is quicker than a snapshot: see [store.Indexer.Get].
func (i *shared[T]) Get(key string) (obj T, ok bool) { return i.objects.Get(key) }

// AddIndexes adds indexes at any time, for queries on later snapshots; see
// [store.Indexer.AddIndexes]. If the indexes are known from the start, [WithIndexes] costs less.
func (i *shared[T]) AddIndexes(indexes ...store.AnyIndex[T]) {
	i.objects.AddIndexes(indexes...)
}

// AddHandler adds a handler, before Run or while it runs. handle is told of all objects as its
// initial list, then of every change. It is called on one goroutine of its own, one event at a
// time, and may take its time: nothing waits for it.
//
// AddHandler does not block. It fails if handle is nil or an option is bad, and with [ErrStopped]
// after Run has ended.
func (i *shared[T]) AddHandler(handle func(Event[T]), optionList ...HandlerOption) (*Handler[T], error) {
	return i.addHandler(opening(handle, i.objects.Open), optionList)
}

func (i *shared[T]) addHandler(handle func(event), optionList []HandlerOption) (*Handler[T], error) {
	h := i.newHandler(optionList)
	switch {
	case handle == nil:
		return nil, errors.New("informer: add a handler: the function is nil")
	case h.options.missing != nil:
		return nil, h.options.missing
	case h.options.redelivery < 0:
		return nil, fmt.Errorf("informer: add a handler: WithRedelivery(%s): give a positive duration", h.options.redelivery)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase == ended {
		return nil, fmt.Errorf("informer: add a handler: %w: handlers are added before or while Run runs", ErrStopped)
	}
	i.enlistLocked(h)
	events := i.ring.follow(h)
	h.run = func(fail func(*PanicError)) { run(h, events, handle, fail) }
	if i.phase == running {
		i.startLocked(h)
	}
	return &Handler[T]{h}, nil
}

// AddMetaHandler adds a handler that needs the key of an object, or its metadata, and whole objects
// now and then: [Informer.Open] returns those. Otherwise it is AddHandler. It is for copies whose
// objects are at rest ([WithStore]), of which nothing is decoded for it but the metadata that it
// reads. Then Old and New have metadata alone, and each call of one of their methods reads it, but
// for name, namespace, UID and resource version. The functions of package enqueue work with them:
//
//	pods.AddMetaHandler(enqueue.Keys(queue, enqueue.Owner[store.Object](replicaSets)))
func (i *shared[T]) AddMetaHandler(handle func(Event[store.Object]), optionList ...HandlerOption) (*Handler[T], error) {
	return i.addHandler(opening(handle, func(entry store.Entry) store.Object { return entry.(store.Object) }), optionList)
}

// Open returns the whole object of one that a handler of [Informer.AddMetaHandler] was told of. It
// is shared and read-only.
func (i *shared[T]) Open(obj store.Object) T { return i.objects.Open(obj) }

// Events yields the events of a handler to a loop: the initial list, then changes. [WithSynced]
// tells the loop that its initial list is complete. The loop's body is the handler, on the caller's
// own goroutine; leaving the loop removes the handler.
//
// The loop blocks until Run begins, and ends with ctx or with Run, whose error has the cause. Each
// range over it begins anew.
func (i *shared[T]) Events(ctx context.Context, optionList ...HandlerOption) iter.Seq[Event[T]] {
	return func(yield func(Event[T]) bool) {
		h := i.newHandler(optionList)
		if h.options.missing != nil {
			panic(h.options.missing.Error())
		}
		h.started = true
		i.mu.Lock()
		if i.phase == ended {
			i.mu.Unlock()
			return
		}
		i.enlistLocked(h)
		events := i.ring.follow(h)
		i.mu.Unlock()
		defer i.forget(h)
		defer close(h.done)
		defer context.AfterFunc(ctx, h.halt)()
		events(func(e event) bool { return yield(opened(e, i.objects.Open)) })
	}
}

func (i *shared[T]) newHandler(optionList []HandlerOption) *handler {
	h := &handler{
		remove: i.forget, over: i.over, log: i.logger, copied: i.WaitSynced,
		idle: func() error {
			if i.isIdle() {
				return i.notRun()
			}
			return nil
		},
		halted: make(chan struct{}), synced: make(chan struct{}), done: make(chan struct{}),
	}
	h.halt = sync.OnceFunc(func() { close(h.halted) })
	h.options.missing = null.Options("informer: add a handler", optionList, func(option HandlerOption) { option(&h.options) })
	return h
}

func (i *shared[T]) enlistLocked(h *handler) {
	h.name = h.options.name
	if h.name == "" {
		i.unnamed++
		h.name = fmt.Sprintf("handler-%d", i.unnamed)
	}
	i.enlisted++
	h.number = i.enlisted
	i.handlers = append(i.handlers, h)
}

func (i *shared[T]) startLocked(h *handler) {
	h.started = true
	i.running.Go(func() {
		h.run(func(err *PanicError) {
			i.logger().Error(err, "A handler has panicked", "handler", h.name, "stack", string(err.Stack))
			if !h.options.isolated {
				i.failed(err)
			}
		})
	})
}

// forget halts a handler and drops it from the list. It does not block.
func (i *shared[T]) forget(h *handler) {
	i.mu.Lock()
	defer i.mu.Unlock()
	h.halt()
	// A search through all would cost programs with thousands of short-lived handlers their time.
	if at, enlisted := slices.BinarySearchFunc(i.handlers, h.number, func(other *handler, number uint64) int {
		return cmp.Compare(other.number, number)
	}); enlisted {
		i.handlers = slices.Delete(i.handlers, at, at+1)
	}
	if !h.started {
		h.started = true
		h.leave()
		close(h.done)
	}
}

// removeOwned halts all handlers of an owner before it waits for each.
func (i *shared[T]) removeOwned(owner any) {
	i.mu.Lock()
	var owned []*handler
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

// failed ends Run with err, unless an earlier error has ended it.
func (i *shared[T]) failed(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.noteLocked(err)
	i.fail(i.failure)
}

// noteLocked notes the first error that ends Run.
func (i *shared[T]) noteLocked(err error) {
	if i.failure == nil && err != nil {
		i.failure, i.failedAt = err, time.Now()
	}
}
