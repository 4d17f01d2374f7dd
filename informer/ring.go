package informer

import (
	"sync"
	"time"

	"github.com/tributary-go/tributary/internal/ring"
	"github.com/tributary-go/tributary/internal/signal"
	"github.com/tributary-go/tributary/store"
)

// sharedRing is the last changes of a store, with the state after the last of them. A reader's position is the number
// of the next change that it wants. It has one writer at a time, and any number of readers, who copy what they want
// and hold nobody up.
type sharedRing[T store.Object] struct {
	changed signal.Signal // broadcast after each change of state
	epoch   time.Time     // what noted.at counts from

	// Not a RWMutex: a writer that has to wait for readers is parked, event by event. Readers hold it for one copy, and those that
	// wait find more when it is their turn: with 100 handlers that is half of the time.
	mu      sync.Mutex
	changes ring.Ring[noted[T]]
	state   store.Snapshot[T] // after the last change: the two always agree
	filled  bool              // the state has been a whole state of the server
	listing uint64            // the number of the last list that was begun
	listed  uint64            // the number of the last list that the state has
}

// noted is an event with the time it came, counted from the ring's epoch.
type noted[T store.Object] struct {
	Event[T]
	at time.Duration
}

// view is what a reader knows after a read: it has seen the changes before next, which is state.
type view[T store.Object] struct {
	next  uint64
	state store.Snapshot[T]
	at    time.Duration
}

func newSharedRing[T store.Object](capacity int) *sharedRing[T] {
	return &sharedRing[T]{changes: ring.New[noted[T]](capacity), epoch: time.Now()}
}

func (r *sharedRing[T]) now() time.Duration { return time.Since(r.epoch) }

// add notes events, which lead to state, over the oldest ones.
func (r *sharedRing[T]) add(state store.Snapshot[T], events ...Event[T]) {
	at := r.now()
	r.mu.Lock()
	for _, e := range events {
		r.noteLocked(e, at)
	}
	r.state = state
	r.mu.Unlock()
	r.changed.Broadcast()
}

// fill notes that the state is one that readers may begin with.
func (r *sharedRing[T]) fill() {
	r.mu.Lock()
	r.filled = true
	r.mu.Unlock()
	r.changed.Broadcast()
}

// list notes that a list begins.
func (r *sharedRing[T]) list() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listing++
}

// lists are the numbers of the last list that was begun, and of the last one that the state has.
func (r *sharedRing[T]) lists() (listing, listed uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listing, r.listed
}

// replace notes that a list made the content state: count changes, of which events are all that the ring could hold.
func (r *sharedRing[T]) replace(state store.Snapshot[T], events []Event[T], count int) {
	at := r.now()
	r.mu.Lock()
	if len(events) == count {
		for _, e := range events {
			r.noteLocked(e, at)
		}
	} else {
		r.changes.Skip(uint64(count))
	}
	r.state = state
	r.filled = true
	r.listed = r.listing
	r.mu.Unlock()
	r.changed.Broadcast()
}

func (r *sharedRing[T]) noteLocked(e Event[T], at time.Duration) { r.changes.Add(noted[T]{e, at}) }

// begin is where a new reader begins; ok is false while there is no whole state.
func (r *sharedRing[T]) begin() (v view[T], ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return view[T]{r.changes.Next(), r.state, r.now()}, r.filled
}

// read appends the changes from position on to into. All is false when some are gone: then it appends nothing, and what
// the reader has not seen is the difference between its state and the view's.
func (r *sharedRing[T]) read(position uint64, into []noted[T]) (events []noted[T], v view[T], all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v = view[T]{r.changes.Next(), r.state, r.now()}
	events, all = r.changes.Read(position, r.changes.Cap(), into)
	return events, v, all
}

// after is how many changes there are from position on, and when the first of them came, where that is still known.
func (r *sharedRing[T]) after(position uint64) (count uint64, at time.Duration, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if position >= r.changes.Next() {
		return 0, 0, false
	}
	if position < r.changes.First() {
		return r.changes.Next() - position, 0, false
	}
	return r.changes.Next() - position, r.changes.At(position).at, true
}

// holds reports whether a change that the ring still holds satisfies match.
func (r *sharedRing[T]) holds(match func(Event[T]) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := r.changes.First(); n < r.changes.Next(); n++ {
		if match(r.changes.At(n).Event) {
			return true
		}
	}
	return false
}
