package informer

import (
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/ring"
	"github.com/tributary-go/tributary/internal/signal"
	"github.com/tributary-go/tributary/store"
)

// sharedRing holds the last changes of a store. A reader's position is the number of its next
// change. The ring has one writer at a time. Readers copy changes out, so none of them holds up
// another goroutine.
//
// It takes a snapshot of the store only if a reader begins, lags too far or asks for it. It also
// takes one before it evicts unread changes. A snapshot per change would make each write copy its
// path.
type sharedRing[T store.Object] struct {
	changed signal.Signal // broadcast after each change of state
	epoch   time.Time     // the zero of noted.at

	// Readers take turns before they lock mu, so the writer waits for one of them at most, and they
	// find more changes at their turn. Under a RWMutex, readers park the writer at each event.
	turn sync.Mutex
	// The writer holds mu from a change of objects until the ring has the change, so the two agree
	// for its holder.
	mu      sync.Mutex
	objects *store.Indexer[T]
	pinned  *store.Snapshot[T] // the state before a list that the ring does not have yet
	changes ring.Ring[noted[T]]
	filled  bool   // the state is, or follows, a whole state of the server
	listing uint64 // the number of the last list that has begun
	listed  uint64 // the number of the last list in the state

	readers []*reader[T]
	slowest uint64    // no reader without a past has a next change before this one
	behind  int       // the number of readers with a past
	deaths  deaths[T] // those that the ring evicted while a reader was behind

	// Changes that every reader has read release their objects. Otherwise a deleted Secret, or many
	// old states of a large object, would live until the ring is full.
	caughtUp int    // the number of readers that have read everything
	kept     uint64 // the number of the oldest change with its objects
}

// told is an event with the time of its arrival since the ring's epoch.
type told[T store.Object] struct {
	Event[T]
	at time.Duration
}

// noted is what the ring has of an event.
type noted[T store.Object] struct {
	told[T]
	had T // for a deletion: the stored object, which may be older than the event's

	// Kept after the object is released.
	uid             types.UID
	resourceVersion string
}

// letGo releases the objects, and keeps what a wait for a version needs.
func (n *noted[T]) letGo() {
	var none T
	obj := n.Object()
	n.uid, n.resourceVersion = obj.GetUID(), obj.GetResourceVersion()
	n.Old, n.New, n.had = none, none, none
}

// before is the object that the store had before the change; the zero T if it had none.
func (n *noted[T]) before() T {
	if n.Type == Deleted {
		return n.had
	}
	return n.Old
}

// reader is one reader's place in the ring.
type reader[T store.Object] struct {
	next  uint64   // the number of its next change
	place int      // in the ring's readers
	past  *past[T] // the state before next, once that change is evicted
}

// reading is the result of a read: events, or the state before them if the ring has evicted some.
type reading[T store.Object] struct {
	events  []told[T]
	evicted bool

	// Set if evicted.
	before   past[T]
	deaths   []death[T] // between the two states
	complete bool       // deaths has all of them

	state store.Snapshot[T] // the state now, if evicted or asked for
	next  uint64            // the number of the first change that is not in the reading
	at    time.Duration
}

func newSharedRing[T store.Object](capacity int, objects *store.Indexer[T]) *sharedRing[T] {
	return &sharedRing[T]{
		changes: ring.New[noted[T]](capacity), epoch: time.Now(), objects: objects,
		deaths: deaths[T]{limit: deathsPerRing * capacity},
	}
}

func (r *sharedRing[T]) now() time.Duration { return time.Since(r.epoch) }

// beginWrite locks the ring for its writer.
func (r *sharedRing[T]) beginWrite() { r.mu.Lock() }

// endWrite unlocks the ring and wakes the readers.
func (r *sharedRing[T]) endWrite() {
	r.mu.Unlock()
	r.changed.Broadcast()
}

func (r *sharedRing[T]) beginRead() {
	r.turn.Lock()
	r.mu.Lock()
}

func (r *sharedRing[T]) endRead() {
	r.mu.Unlock()
	r.turn.Unlock()
}

// addLocked notes the changes of one write, and evicts the oldest ones.
func (r *sharedRing[T]) addLocked(changes ...noted[T]) {
	at := r.now()
	r.makeRoomLocked(changes)
	for i := range changes {
		changes[i].at = at
		r.noteLocked(changes[i])
	}
	r.letGoLocked()
}

// makeRoomLocked gives each reader whose next change is about to be evicted the state at its
// position. objects already has the new changes.
func (r *sharedRing[T]) makeRoomLocked(changes []noted[T]) {
	end, capacity := r.changes.Next()+uint64(len(changes)), uint64(r.changes.Cap())
	if end > capacity && end-capacity > r.slowest {
		r.rememberLocked(end-capacity, r.objects.Snapshot, changes)
	}
}

// rememberLocked gives each reader whose next change is before end the state at its position:
// later, without changes and without those in the ring.
func (r *sharedRing[T]) rememberLocked(end uint64, later func() store.Snapshot[T], changes []noted[T]) {
	r.slowest = r.changes.Next()
	// Handlers that wait for one lock stop at one change, and share its past.
	pasts := map[uint64]*past[T]{}
	for _, rd := range r.readers {
		switch {
		case rd.past != nil:
		case rd.next >= end:
			r.slowest = min(r.slowest, rd.next)
		default:
			r.behind++
			if rd.past = pasts[rd.next]; rd.past != nil {
				continue
			}
			rd.past = &past[T]{later: later(), was: map[string]T{}}
			pasts[rd.next] = rd.past
			for n := rd.next; n < r.changes.Next(); n++ {
				rd.past.undo(r.changes.Slot(n))
			}
			for i := range changes {
				rd.past.undo(&changes[i])
			}
		}
	}
}

// fill notes that readers may begin at the present state.
func (r *sharedRing[T]) fill() {
	r.beginWrite()
	defer r.endWrite()
	r.filled = true
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

// stateLocked is the state after the changes in the ring.
func (r *sharedRing[T]) stateLocked() store.Snapshot[T] {
	if r.pinned != nil {
		return *r.pinned
	}
	return r.objects.Snapshot()
}

// pin makes state the present one for all readers, until replace. It reports whether a reader lags:
// none begins to lag before replace.
func (r *sharedRing[T]) pin(state *store.Snapshot[T]) (lagging bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pinned = state
	return r.caughtUp < len(r.readers)
}

// replace notes a list, which made count changes. changes has them all, unless the ring cannot hold
// them; before is the state before the list. deleted has the list's deletions if a reader lags.
func (r *sharedRing[T]) replace(before store.Snapshot[T], changes []noted[T], count int, deleted []Event[T]) {
	at := r.now()
	r.beginWrite()
	defer r.endWrite()
	r.pinned = nil
	if len(changes) == count {
		r.makeRoomLocked(changes)
		for i := range changes {
			changes[i].at = at
			r.noteLocked(changes[i])
		}
	} else {
		r.rememberLocked(math.MaxUint64, func() store.Snapshot[T] { return before }, nil)
		if skipped := r.changes.Next(); r.caughtUp < len(r.readers) {
			for n := r.changes.First(); n < skipped; n++ {
				r.buryLocked(n)
			}
			r.deaths.add(r.newbornLocked(deleted, skipped)...)
		}
		r.changes.Skip(uint64(count))
		r.caughtUp = 0
	}
	r.filled = true
	r.listed = r.listing
	r.letGoLocked()
}

func (r *sharedRing[T]) noteLocked(n noted[T]) {
	if r.behind > 0 && r.changes.Full() {
		r.buryLocked(r.changes.First())
	}
	r.changes.Add(n)
	r.caughtUp = 0
}

// letGoLocked releases the objects of changes if every reader has read everything.
func (r *sharedRing[T]) letGoLocked() {
	if r.caughtUp < len(r.readers) {
		return
	}
	for r.kept = max(r.kept, r.changes.First()); r.kept < r.changes.Next(); r.kept++ {
		r.changes.Slot(r.kept).letGo()
	}
}

// begin adds a reader, whose first reading is the present state; ok is false if there is no whole
// state yet. The reader counts until it leaves.
func (r *sharedRing[T]) begin() (rd *reader[T], first reading[T], ok bool) {
	r.beginRead()
	defer r.endRead()
	if !r.filled {
		return nil, first, false
	}
	rd = &reader[T]{next: r.changes.Next(), place: len(r.readers)}
	r.readers = append(r.readers, rd)
	r.caughtUp++
	return rd, reading[T]{state: r.stateLocked(), next: rd.next, at: r.now()}, true
}

// leave removes a reader.
func (r *sharedRing[T]) leave(rd *reader[T]) {
	r.beginRead()
	defer r.endRead()
	last := len(r.readers) - 1
	r.readers[rd.place] = r.readers[last]
	r.readers[rd.place].place = rd.place
	r.readers[last] = nil
	r.readers = r.readers[:last]
	r.caughtUpLocked(rd)
	if rd.next == r.changes.Next() {
		r.caughtUp--
	}
	r.letGoLocked()
}

// read returns the changes since the reader's last reading, appended to into, or the state before
// them if some are evicted. whole asks for the state after them, too.
func (r *sharedRing[T]) read(rd *reader[T], into []told[T], whole bool) reading[T] {
	r.beginRead()
	defer r.endRead()
	got := reading[T]{events: into, next: r.changes.Next(), at: r.now()}
	if rd.next < r.changes.First() {
		got.evicted, got.before = true, *rd.past
		got.deaths, got.complete = r.deathsLocked(rd.next)
	} else {
		got.events = slices.Grow(into, int(got.next-rd.next))
		for n := rd.next; n < got.next; n++ { // what else the ring has takes as much space again
			got.events = append(got.events, r.changes.Slot(n).told)
		}
	}
	if whole || got.evicted {
		got.state = r.stateLocked()
	}
	if rd.next < r.changes.Next() {
		r.caughtUp++
	}
	rd.next = got.next
	r.caughtUpLocked(rd)
	r.letGoLocked()
	return got
}

// after returns the number of changes from position on, and the time of the first of them if the
// ring still has it.
func (r *sharedRing[T]) after(position uint64) (count uint64, at time.Duration, known bool) {
	r.beginRead()
	defer r.endRead()
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
	r.beginRead()
	defer r.endRead()
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
