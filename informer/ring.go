package informer

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/ring"
	"github.com/tributary-go/tributary/internal/signal"
	"github.com/tributary-go/tributary/store"
)

// sharedRing holds a store's last changes, and the state after them. It has one writer at a time.
// Readers copy changes out, so none of them holds up another goroutine.
type sharedRing[T store.Object] struct {
	changed signal.Signal // broadcast after each change of state
	epoch   time.Time     // the zero of noted.at

	// A plain mutex: under a RWMutex, readers park the writer at each event. Readers that wait for
	// a plain lock find more changes at their turn, which halves the time with 100 handlers.
	mu      sync.Mutex
	changes ring.Ring[noted[T]]
	state   store.Snapshot[T] // after the last change in the ring, always
	filled  bool              // the state is, or follows, a whole state of the server
	listing uint64            // the number of the last list that has begun
	listed  uint64            // the number of the last list in the state

	// Changes that every reader has read release their objects. Otherwise a deleted Secret, or many
	// old states of a large object, would live until the ring is full.
	readers, caughtUp int    // the number of readers, and of those that have read everything
	kept              uint64 // the number of the oldest change with its objects
}

// noted is an event with the time of its arrival since the ring's epoch.
type noted[T store.Object] struct {
	Event[T]
	at time.Duration

	// Kept after the object is released.
	uid             types.UID
	resourceVersion string
}

// letGo releases the objects, and keeps what a wait for a version needs.
func (n *noted[T]) letGo() {
	var none T
	obj := n.Object()
	n.uid, n.resourceVersion = obj.GetUID(), obj.GetResourceVersion()
	n.Old, n.New = none, none
}

// view is a reader's knowledge after a read: all changes before next, which lead to state.
type view[T store.Object] struct {
	next  uint64
	state store.Snapshot[T]
	at    time.Duration
}

func newSharedRing[T store.Object](capacity int) *sharedRing[T] {
	return &sharedRing[T]{changes: ring.New[noted[T]](capacity), epoch: time.Now()}
}

func (r *sharedRing[T]) now() time.Duration { return time.Since(r.epoch) }

// add notes events, which lead to state, and evicts the oldest ones.
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

// fill notes that readers may begin at the present state.
func (r *sharedRing[T]) fill() {
	r.mu.Lock()
	r.filled = true
	r.mu.Unlock()
	r.changed.Broadcast()
}

func (r *sharedRing[T]) list() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listing++
}

// lists returns the numbers of the last list that has begun, and of the last list in the state.
func (r *sharedRing[T]) lists() (listing, listed uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listing, r.listed
}

// replace notes a list, which led to state by count changes. events has them all, unless the ring
// cannot hold them.
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

// letGoLocked releases the objects of changes if every reader has read everything.
func (r *sharedRing[T]) letGoLocked() {
	if r.caughtUp < r.readers {
		return
	}
	for r.kept = max(r.kept, r.changes.First()); r.kept < r.changes.Next(); r.kept++ {
		r.changes.Slot(r.kept).letGo()
	}
}

// begin adds a reader at the present state; ok is false if there is no whole state yet. The reader
// counts until it leaves.
func (r *sharedRing[T]) begin() (v view[T], ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.filled {
		r.readers++
		r.caughtUp++
	}
	return view[T]{r.changes.Next(), r.state, r.now()}, r.filled
}

// leave removes the reader that has read everything before next.
func (r *sharedRing[T]) leave(next uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers--
	if next == r.changes.Next() {
		r.caughtUp--
	}
	r.letGoLocked()
}

// read appends the changes from position on to into. If some of them are gone, all is false and
// nothing is appended: the reader then needs the difference between its state and the view's.
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

// after returns the number of changes from position on, and the time of the first of them if the
// ring still has it.
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

// holds reports whether a change of key in the ring satisfies match.
func (r *sharedRing[T]) holds(key string, match func(kind EventType, uid types.UID, resourceVersion string) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := r.changes.First(); n < r.changes.Next(); n++ {
		change := r.changes.At(n)
		if change.Key != key {
			continue
		}
		if n >= r.kept {
			change.letGo() // At returned a copy
		}
		if match(change.Type, change.uid, change.resourceVersion) {
			return true
		}
	}
	return false
}
