package informer

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

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

	// The objects of changes that every reader has read are let go: a deleted Secret, or a thousand old states of
	// large objects, must not live for as long as the ring is not full.
	readers, caughtUp int    // how many there are, and how many of them have read everything
	kept              uint64 // the number of the oldest change that has its objects
}

// noted is an event with the time it came, counted from the ring's epoch.
type noted[T store.Object] struct {
	Event[T]
	at time.Duration

	// What is left of the object once it was let go.
	uid             types.UID
	resourceVersion string
}

// letGo keeps of a change what waiting for a version needs.
func (n *noted[T]) letGo() {
	var none T
	obj := n.Object()
	n.uid, n.resourceVersion = obj.GetUID(), obj.GetResourceVersion()
	n.Old, n.New = none, none
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
	r.letGoLocked()
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
		r.caughtUp = 0
	}
	r.state = state
	r.filled = true
	r.listed = r.listing
	r.letGoLocked()
	r.mu.Unlock()
	r.changed.Broadcast()
}

func (r *sharedRing[T]) noteLocked(e Event[T], at time.Duration) {
	r.changes.Add(noted[T]{Event: e, at: at})
	r.caughtUp = 0
}

// letGoLocked lets go of the objects that no reader will ask for.
func (r *sharedRing[T]) letGoLocked() {
	if r.caughtUp < r.readers {
		return
	}
	for r.kept = max(r.kept, r.changes.First()); r.kept < r.changes.Next(); r.kept++ {
		r.changes.Slot(r.kept).letGo()
	}
}

// begin is where a new reader begins; ok is false while there is no whole state. A reader that has begun reads on
// until it leaves.
func (r *sharedRing[T]) begin() (v view[T], ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.filled {
		r.readers++
		r.caughtUp++
	}
	return view[T]{r.changes.Next(), r.state, r.now()}, r.filled
}

// leave ends the reader that has read everything before next.
func (r *sharedRing[T]) leave(next uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers--
	if next == r.changes.Next() {
		r.caughtUp--
	}
	r.letGoLocked()
}

// read appends the changes from position on to into. All is false when some are gone: then it appends nothing, and what
// the reader has not seen is the difference between its state and the view's.
func (r *sharedRing[T]) read(position uint64, into []noted[T]) (events []noted[T], v view[T], all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v = view[T]{r.changes.Next(), r.state, r.now()}
	events, all = r.changes.Read(position, r.changes.Cap(), into)
	if position < r.changes.Next() {
		r.caughtUp++
		r.letGoLocked()
	}
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

// holds reports whether a change of key that the ring still holds satisfies match.
func (r *sharedRing[T]) holds(key string, match func(kind EventType, uid types.UID, resourceVersion string) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := r.changes.First(); n < r.changes.Next(); n++ {
		change := r.changes.At(n)
		if change.Key != key {
			continue
		}
		if n >= r.kept {
			change.letGo() // of the copy
		}
		if match(change.Type, change.uid, change.resourceVersion) {
			return true
		}
	}
	return false
}
