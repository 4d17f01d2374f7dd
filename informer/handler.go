package informer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/tributary-go/tributary/store"
)

// Handler is one receiver of an informer's events. [Informer.AddHandler] makes it. Its methods are
// safe for concurrent use.
//
// It begins at the state of the moment when it is added, or at the first whole state if it is added
// before. It has a position in the ring of the informer's last changes, and the state at that
// position.
// While the change at its position is in the ring, it is told every change. Otherwise it is told
// the difference between its state and the present one. Either way it goes on from the present
// state, so nothing is queued for it.
type Handler[T store.Object] struct{ *handler }

// handler has the methods of handlers of all types.
type handler struct {
	number  uint64 // guarded by the informer's lock; 0 before it is enlisted
	name    string
	options handlerOptions
	ring    *sharedRing
	leave   func()                       // its place in the ring
	run     func(fail func(*PanicError)) // tells the function; nil for a loop
	remove  func(*handler)
	over    context.Context             // ends with the informer's Run; the cause is Run's error
	idle    func() error                // an error if Run has not been called
	copied  func(context.Context) error // the informer's WaitSynced
	log     func() logr.Logger

	halted  chan struct{}
	halt    func() // closes halted, once
	synced  chan struct{}
	done    chan struct{} // closed by the delivering goroutine; after that, err does not change
	started bool          // guarded by the informer's lock
	err     error

	position  atomic.Uint64 // the next change that the handler has not returned from
	since     atomic.Int64  // ring time: no older change awaits the handler's return
	began     atomic.Bool   // the initial list has begun
	untold    atomic.Int64  // objects of the initial list that the handler has not returned from
	delivered atomic.Uint64
	diffs     atomic.Uint64

	incomplete atomic.Uint64 // differences from which lives are missing
}

// delivery reads a ring for a handler. Only the delivering goroutine uses it.
type delivery struct {
	*handler
	reader *reader // its place in the ring, from its addition on
	batch  []told
	wide   wide
}

// follow gives a handler its place in the ring, and returns its events.
func (r *sharedRing) follow(h *handler) iter.Seq[event] {
	f := &delivery{handler: h, reader: r.enter()}
	h.ring, h.leave = r, func() { r.leave(f.reader) }
	return f.events
}

// Lag is the distance of a handler behind the store.
type Lag struct {
	// Events is the number of changes, and of objects of the initial list, from which the handler
	// has not returned yet.
	Events uint64
	// Age is the time for which the oldest of them has waited. Until the handler is synced, it is
	// the time since its initial list began. While the handler is told a difference, it is an upper
	// bound.
	Age time.Duration
}

// Name is the name of [WithName], or "handler-" and a number.
func (h *handler) Name() string { return h.name }

// Synced is closed once the handler has returned from the last event of its initial list, and the
// function of [WithSynced] has returned too. It stays open if Run ends before that; see
// [Handler.WaitSynced].
func (h *handler) Synced() <-chan struct{} { return h.synced }

// WaitSynced blocks until [Handler.Synced] is closed. If ctx ends first, the error gives the cause:
// a Run that was never called, what keeps the store from being synced, such as a 403, or the
// handler itself, which has not returned from its initial list. If the handler ends first,
// WaitSynced fails at once: with the handler's panic, or with [ErrStopped] and Run's error.
func (h *handler) WaitSynced(ctx context.Context) error {
	select {
	case <-h.synced:
		return nil
	case <-ctx.Done():
	case <-h.done:
	}
	select {
	case <-h.synced: // select picks at random if more than one is closed
		return nil
	default:
	}
	select {
	case <-h.done:
		return h.endedUnsynced()
	default:
	}
	cause := context.Cause(ctx)
	if err := h.idle(); err != nil {
		return fmt.Errorf("informer: %s: not synced: %w: %w", h.name, err, cause)
	}
	if err := h.copied(ctx); err != nil && !h.ring.mayBegin() {
		return fmt.Errorf("informer: %s: %w", h.name, err)
	}
	return fmt.Errorf("informer: %s: not synced: it has not returned from its initial list: %w", h.name, cause)
}

func (h *handler) endedUnsynced() error {
	if h.err != nil {
		return h.err
	}
	if cause := context.Cause(h.over); cause != nil && !errors.Is(cause, ErrStopped) {
		return fmt.Errorf("informer: %s: not synced: %w: %w", h.name, ErrStopped, cause)
	}
	return fmt.Errorf("informer: %s: not synced: %w", h.name, ErrStopped)
}

// Lag returns the handler's present distance behind the store. It does not block.
func (h *handler) Lag() Lag {
	initial := h.began.Load() && !h.isSynced()
	position := h.position.Load()
	since := time.Duration(h.since.Load())
	lag := h.ring.lag(position, since)
	if initial {
		lag.Events += uint64(h.untold.Load())
		lag.Age = h.ring.age(since)
	}
	return lag
}

// CaughtUp reports whether the handler has returned from its initial list, and from every change
// that a reader of the copy can have seen by now. It does not block.
func (h *handler) CaughtUp() bool {
	return h.isSynced() && h.ring.isTold(h.position.Load())
}

func (h *handler) isSynced() bool {
	select {
	case <-h.synced:
		return true
	default:
		return false
	}
}

// Remove ends the handler and blocks until it has returned for the last time: after Remove there
// are no more events. It may be called at any time and more than once. A handler must not call it,
// since it would wait for itself for ever: see [Handler.Halt].
func (h *handler) Remove() { h.remove(h); <-h.done }

// Halt ends the handler as [Handler.Remove] does, but does not block. The handler is told nothing
// after the event that it is handling, if any. When Halt returns, the handler has left the
// informer's Status. A handler may call it to end itself.
func (h *handler) Halt() { h.remove(h) }

// run tells handle of events until the handler is halted.
func run(h *handler, events iter.Seq[event], handle func(event), fail func(*PanicError)) {
	defer close(h.done)
	var now event // zero in the function of WithSynced
	if synced := h.options.synced; synced != nil {
		h.options.synced = func() { now = event{}; synced() }
	}
	guarded(func() {
		for now = range events {
			handle(now)
		}
	}, func(p PanicError) {
		p.Handler, p.Type, p.Key = h.name, now.Type, now.Key
		h.err = &p
		fail(&p)
	})
}

// guarded calls f, and calls broke if f panicked or ended its goroutine.
func guarded(f func(), broke func(PanicError)) {
	returned := false
	defer func() {
		if p := recover(); p != nil || !returned {
			broke(PanicError{Value: p, Stack: debug.Stack()})
		}
	}()
	f()
	returned = true
}

// events yields the handler's events, and blocks between them. It ends when the handler is halted.
func (h *delivery) events(yield func(event) bool) {
	tell := func(e event) bool {
		select {
		case <-h.halted:
			return false
		default:
			return yield(e)
		}
	}
	defer h.ring.leave(h.reader)
	if !h.initial(tell) {
		return
	}
	if h.options.synced != nil {
		h.options.synced()
	}
	close(h.synced)
	var due <-chan time.Time
	var timer *time.Timer
	if h.options.redelivery > 0 {
		timer = time.NewTimer(h.options.redelivery)
		defer timer.Stop()
		due = timer.C
	}
	for redeliver := false; ; {
		changed := h.ring.changed.Wait() // before the reading, which may then be newer
		got := h.ring.read(h.reader, h.batch[:0], redeliver)
		if !h.tellReading(got, tell) {
			return
		}
		if redeliver {
			if !h.tellAll(got.state, Redelivered, tell) {
				return
			}
			timer.Reset(h.options.redelivery)
		}
		redeliver = false
		select {
		case <-changed:
		case <-due: // chosen at random beside changed, and so even if changes never stop
			redeliver = true
		case <-h.halted:
			return
		}
	}
}

// initial waits for the state at which the handler begins, and tells all of it.
func (h *delivery) initial(tell func(event) bool) bool {
	var first reading
	if !h.ring.changed.Until(h.halted, func() (begun bool) {
		first, begun = h.ring.begin(h.reader)
		return begun
	}) {
		return false
	}
	h.since.Store(int64(first.at))
	h.position.Store(first.next)
	h.untold.Store(int64(first.state.Len()))
	h.began.Store(true)
	return h.tellAll(first.state, Added, tell)
}

// tellAll tells all objects of a state, as added or redelivered.
func (h *delivery) tellAll(state snapshot, kind EventType, tell func(event) bool) bool {
	count := 0
	for key, obj := range state.All() {
		e := event{Key: key, New: obj, Type: kind, Initial: kind == Added}
		if kind == Redelivered {
			e.Old = obj
		}
		if !tell(e) {
			return false
		}
		if count++; kind == Added {
			h.untold.Add(-1)
		}
	}
	h.delivered.Add(uint64(count))
	return true
}

// tellReading tells a reading, event by event or as a difference.
func (h *delivery) tellReading(got reading, tell func(event) bool) bool {
	if got.gap != nil {
		return h.tellDifference(got, tell)
	}
	position := got.next - uint64(len(got.events))
	for i := range got.events {
		h.since.Store(int64(got.events[i].at))
		if !tell(got.events[i].event) {
			return false
		}
		position++
		h.position.Store(position)
	}
	h.since.Store(int64(got.at))
	h.delivered.Add(uint64(len(got.events)))
	clear(got.events) // the buffer must not keep objects alive
	if h.batch = got.events; h.wide.now(len(h.batch), cap(h.batch)) {
		h.batch = nil // of a burst that is over
	}
	return true
}

func (h *delivery) tellDifference(got reading, tell func(event) bool) bool {
	h.diffs.Add(1)
	if !got.gap.complete && h.incomplete.Add(1) == 1 {
		h.log().Info("A handler fell so far behind that it is not told of some short-lived objects: "+
			"make it quicker, or raise WithRing", "handler", h.name)
	}
	count := 0
	for e := range got.gap.until(got.state) {
		if !tell(e) {
			return false
		}
		count++
	}
	h.position.Store(got.next)
	h.since.Store(int64(got.at))
	h.delivered.Add(uint64(count))
	return true
}

// HandlerStatus is the health of a handler at one moment.
type HandlerStatus struct {
	// Name is the name of [WithName]. Without one, Unnamed is true and Name is "handler-" and a
	// number.
	Name    string
	Unnamed bool
	// Synced says that the handler has returned from its whole initial list.
	Synced bool
	// Lag is how far the handler is behind.
	Lag Lag
	// Delivered counts the events told, in whole batches.
	Delivered uint64
	// Differences counts how often the handler fell behind the ring and was told a difference.
	Differences uint64
	// Incomplete counts the differences from which short lives are missing: more objects were
	// deleted while the handler was behind than are kept for it. See the package's guarantees.
	Incomplete uint64
	// Err is the *[PanicError] with which the handler ended; nil if it did not panic.
	Err error
}

func (h *handler) status() HandlerStatus {
	s := HandlerStatus{
		Name: h.name, Unnamed: h.options.name == "", Synced: h.isSynced(), Lag: h.Lag(),
		Delivered: h.delivered.Load(), Differences: h.diffs.Load(), Incomplete: h.incomplete.Load(),
	}
	select {
	case <-h.done:
		s.Err = h.err
	default:
	}
	return s
}

// PanicError is the error of a handler, or of the function of [WithVerification], that panicked or
// ended its goroutine.
type PanicError struct {
	// Handler is the handler's name, empty for the function of [WithVerification]. Type and Key are
	// those of the event being handled, zero in the function of [WithSynced].
	Handler string
	Type    EventType
	Key     string
	// Value is the argument of panic; nil if the handler called runtime.Goexit, as
	// testing.T.FailNow does.
	Value any
	// Stack is the stack of the goroutine.
	Stack []byte
}

// Error names the handler and the event. It quotes the value only if that is an error or a string.
func (e *PanicError) Error() string {
	what := fmt.Sprintf("panicked with a %T", e.Value)
	switch value := e.Value.(type) {
	case nil:
		what = "ended its goroutine"
	case error:
		what = "panicked: " + value.Error()
	case string:
		what = "panicked: " + value
	}
	if e.Handler == "" {
		return "informer: the function given to WithVerification " + what
	}
	if e.Type == 0 {
		return fmt.Sprintf("informer: handler %q %s (when told that it was synced)", e.Handler, what)
	}
	return fmt.Sprintf("informer: handler %q %s (at %s %s)", e.Handler, what, e.Type, e.Key)
}

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrStopped is the cause of errors after the end of Run.
var ErrStopped = errors.New("the informer has stopped")
