package informer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/tributary-go/tributary/store"
)

// Handler is one receiver of an informer's events. [Informer.AddHandler] makes it. Its methods are safe for concurrent
// use.
//
// It has a position in the ring of the informer's last changes, and the state at that position. As long as the change
// at its position is still in the ring, it is told every change; else it is told the difference between its state and
// the present one. Either way it goes on with the present state, so that nothing is queued for it.
type Handler[T store.Object] struct {
	name    string
	handle  func(Event[T])
	options handlerOptions
	metrics Metrics
	ring    *sharedRing[T]
	remove  func(*Handler[T])
	over    context.Context // ends with the informer's Run, whose error is the cause
	idle    func() error    // says that Run has not been called

	halted  chan struct{}
	halt    func() // closes halted, once
	synced  chan struct{}
	done    chan struct{} // closed by whoever delivers; after that, err does not change
	started bool          // guarded by the informer's lock
	err     error

	position  atomic.Uint64 // of the next change that the handler has not returned from
	since     atomic.Int64  // a time of the ring's: nothing that the handler has not returned from is older
	delivered atomic.Uint64
	diffs     atomic.Uint64

	// Of the goroutine that delivers.
	at    view[T]
	reads bool // the ring counts this handler among its readers
	batch []noted[T]
	now   Event[T] // what the handler is being told; zero in the function of WithSynced
}

// Lag is how far a handler is behind the store.
type Lag struct {
	// Events is the number of changes of which the handler has not been told, or has not returned from yet.
	Events uint64
	// Age is how long the oldest of them has been waiting. While the handler is given a difference it is an upper bound.
	Age time.Duration
}

// Name is the name of [WithName], or "handler-" and a number.
func (h *Handler[T]) Name() string { return h.name }

// Synced is closed once the handler has returned from the last event of its initial list, and the function of
// [WithSynced] too. Where Run ends before that,
// it stays open; see [Handler.WaitSynced].
func (h *Handler[T]) Synced() <-chan struct{} { return h.synced }

// WaitSynced blocks until [Handler.Synced] is closed. When ctx ends first, the error says whether nobody has called Run.
// When the handler ends first, WaitSynced fails at once: with its panic, or with [ErrStopped] and the error with which Run
// failed.
func (h *Handler[T]) WaitSynced(ctx context.Context) error {
	select {
	case <-h.synced:
		return nil
	case <-ctx.Done():
		if err := h.idle(); err != nil {
			return fmt.Errorf("informer: %s: not synced: %w: %w", h.name, err, context.Cause(ctx))
		}
		return fmt.Errorf("informer: %s: not synced: %w", h.name, context.Cause(ctx))
	case <-h.done:
	}
	select {
	case <-h.synced: // both were true
		return nil
	default:
	}
	if h.err != nil {
		return h.err
	}
	if cause := context.Cause(h.over); cause != nil && !errors.Is(cause, ErrStopped) {
		return fmt.Errorf("informer: %s: not synced: %w: %w", h.name, ErrStopped, cause)
	}
	return fmt.Errorf("informer: %s: not synced: %w", h.name, ErrStopped)
}

// Lag is how far the handler is behind now. It does not block.
func (h *Handler[T]) Lag() Lag {
	position := h.position.Load()
	since := time.Duration(h.since.Load())
	count, at, known := h.ring.after(position)
	if count == 0 {
		return Lag{}
	}
	if !known {
		at = since
	}
	return Lag{Events: count, Age: h.ring.now() - at}
}

// Remove ends the handler and waits until it has returned for the last time: after Remove there are no more events.
// It may be called at any time and more than once. A handler that calls it waits for itself, and so for ever: see
// [Handler.Halt].
func (h *Handler[T]) Remove() { h.remove(h); <-h.done }

// Halt ends the handler as [Handler.Remove] does, and does not wait. The handler is told nothing after the event that it
// is handling, if any, and has left the informer's Status when Halt returns. A handler that has had enough calls it.
func (h *Handler[T]) Halt() { h.remove(h) }

// run tells the handler everything, until it is halted.
func (h *Handler[T]) run(fail func(error)) {
	defer close(h.done)
	guarded(func() {
		for e := range h.events {
			h.now = e
			h.handle(e)
		}
	}, func(p PanicError) {
		p.Handler, p.Type, p.Key = h.name, h.now.Type, h.now.Key
		h.err = &p
		fail(h.err)
	})
}

// guarded calls f, and broke where f did not return but panicked or ended the goroutine.
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

// events yields all that the handler is to be told, and blocks in between. It ends when the handler is halted.
func (h *Handler[T]) events(yield func(Event[T]) bool) {
	defer func() {
		if h.reads {
			h.ring.leave(h.at.next)
		}
	}()
	if !h.initial(yield) {
		return
	}
	if h.options.synced != nil {
		h.now = Event[T]{}
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
	var changed <-chan struct{} // set once there was nothing to tell
	for {
		told, goOn := h.catchUp(yield)
		redeliver := false
		switch {
		case !goOn:
			return
		case told:
			changed = nil
			redeliver = h.isDue(due) // also while changes never end
		case changed == nil:
			changed = h.ring.changed.Wait()
			continue // look once more, lest a change slip by
		default:
			if redeliver, goOn = h.wait(changed, due); !goOn {
				return
			}
			changed = nil
		}
		if redeliver {
			if !h.redeliver(yield) {
				return
			}
			timer.Reset(h.options.redelivery)
		}
	}
}

// wait blocks until something has changed or a redelivery is due; goOn is false when the handler is halted.
func (h *Handler[T]) wait(changed <-chan struct{}, due <-chan time.Time) (redeliver, goOn bool) {
	select {
	case <-changed:
		return false, true
	case <-due:
		return true, true
	case <-h.halted:
		return false, false
	}
}

func (h *Handler[T]) isDue(due <-chan time.Time) bool {
	select {
	case <-due:
		return true
	default:
		return false
	}
}

// initial tells the whole state at which the handler begins, once there is one.
func (h *Handler[T]) initial(yield func(Event[T]) bool) bool {
	for {
		changed := h.ring.changed.Wait()
		v, ok := h.ring.begin()
		if ok {
			h.since.Store(int64(v.at))
			h.position.Store(v.next)
			h.at, h.reads = v, true
			break
		}
		select {
		case <-changed:
		case <-h.halted:
			return false
		}
	}
	return h.tellAll(yield, func(key string, obj T) Event[T] {
		return Event[T]{Key: key, New: obj, Type: Added, Initial: true}
	})
}

// redeliver tells everything that the handler knows again.
func (h *Handler[T]) redeliver(yield func(Event[T]) bool) bool {
	return h.tellAll(yield, func(key string, obj T) Event[T] {
		return Event[T]{Key: key, Old: obj, New: obj, Type: Redelivered}
	})
}

func (h *Handler[T]) tellAll(yield func(Event[T]) bool, event func(string, T) Event[T]) bool {
	began := time.Now()
	count := 0
	for key, obj := range h.at.state.All() {
		if h.isHalted() || !yield(event(key, obj)) {
			return false
		}
		count++
	}
	h.finished(count, false, began)
	return true
}

// catchUp tells what has changed since the handler's position, event by event or as a difference.
func (h *Handler[T]) catchUp(yield func(Event[T]) bool) (told, goOn bool) {
	before := h.at
	events, now, all := h.ring.read(before.next, h.batch[:0])
	h.at = now // and not the state before, which would keep old objects alive
	switch {
	case !all:
		return true, h.tellDifference(yield, before.state, now)
	case len(events) == 0:
		h.since.Store(int64(now.at))
		return false, !h.isHalted()
	}
	h.batch = events
	return true, h.tellEvents(yield, events, now)
}

func (h *Handler[T]) tellEvents(yield func(Event[T]) bool, events []noted[T], now view[T]) bool {
	began := time.Now()
	position := now.next - uint64(len(events))
	for i := range events {
		h.since.Store(int64(events[i].at))
		if h.isHalted() || !yield(events[i].Event) {
			return false
		}
		position++
		h.position.Store(position)
	}
	h.since.Store(int64(now.at))
	clear(events) // the objects are not the buffer's to keep
	h.finished(len(events), false, began)
	return true
}

func (h *Handler[T]) tellDifference(yield func(Event[T]) bool, before store.Snapshot[T], now view[T]) bool {
	h.diffs.Add(1)
	began := time.Now()
	count := 0
	for e := range difference(before, now.state) {
		if h.isHalted() || !yield(e) {
			return false
		}
		count++
	}
	h.position.Store(now.next)
	h.since.Store(int64(now.at))
	h.finished(count, true, began)
	return true
}

func (h *Handler[T]) finished(count int, difference bool, began time.Time) {
	h.delivered.Add(uint64(count))
	if h.metrics != nil && count > 0 {
		h.metrics.Delivered(DeliveryStats{
			Handler: h.name, Events: count, Difference: difference, Duration: time.Since(began), Lag: h.Lag(),
		})
	}
}

func (h *Handler[T]) isHalted() bool {
	select {
	case <-h.halted:
		return true
	default:
		return false
	}
}

// status is read by anybody.
func (h *Handler[T]) status() HandlerStatus {
	s := HandlerStatus{Name: h.name, Unnamed: h.options.name == "", Lag: h.Lag(), Delivered: h.delivered.Load(), Differences: h.diffs.Load()}
	select {
	case <-h.synced:
		s.Synced = true
	default:
	}
	select {
	case <-h.done:
		s.Err = h.err
	default:
	}
	return s
}

// PanicError is a handler, or the function of [WithVerification], that panicked or ended its goroutine.
type PanicError struct {
	// Handler is the handler's name, empty for the function of [WithVerification]; Type and Key are of the event that it was
	// handling, and zero in the function of [WithSynced].
	Handler string
	Type    EventType
	Key     string
	// Value is what was given to panic; nil where the handler called runtime.Goexit, as testing.T.FailNow does.
	Value any
	// Stack is the stack of the goroutine.
	Stack []byte
}

// Error names the handler and the event, and quotes the value only where it is an error or a string.
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

// Unwrap returns the value where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrStopped is the cause of errors after the end of Run.
var ErrStopped = errors.New("the informer has stopped")
