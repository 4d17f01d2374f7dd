package informer

import (
	"iter"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/signal"
	"github.com/tributary-go/tributary/store"
)

// sharedRing has the timeline of a store, for one writer at a time and any number of readers.
// Readers copy changes out, so none of them holds up another goroutine.
//
// It takes a snapshot of the store only if a reader begins, lags too far or asks for it. It also
// takes one before it evicts unread changes. A snapshot per change would make each write copy its
// path.
type sharedRing struct {
	changed signal.Signal // broadcast after each change of state, for the readers
	// moved is broadcast then, too, and after a bookmark: it is for waits for a version. The
	// handlers of a quiet collection sleep through its bookmarks.
	moved signal.Signal

	// Readers take turns before they lock mu, so the writer waits for one of them at most, and they
	// find more changes at their turn. Under a RWMutex, readers park the writer at each event.
	turn sync.Mutex
	// The writer holds mu from a change of entries until the timeline has it, so the two agree for
	// the holder of mu.
	mu       sync.Mutex
	entries  *store.Entries
	pinned   *snapshot // the state before a list that the timeline does not have yet
	timeline timeline
	filled   bool             // the state is, or follows, a whole state of the server
	waiting  map[*reader]bool // they begin when the state is filled
	listing  uint64           // the number of the last list that has begun
	listed   uint64           // the number of the last list in the state
}

// reading is the result of a read: the changes since the reader's last reading, or a gap.
type reading struct {
	events []told
	gap    *gap
	state  snapshot // the state after them, if there is a gap or the reader asks for it
	next   uint64   // the number of the first change that is not in the reading
	at     time.Duration
}

func newSharedRing(capacity int, entries *store.Entries) *sharedRing {
	return &sharedRing{entries: entries, timeline: newTimeline(capacity, entries.Snapshot)}
}

// endWrite unlocks the ring and wakes the readers.
func (r *sharedRing) endWrite() {
	r.mu.Unlock()
	r.changed.Broadcast()
	r.moved.Broadcast()
}

func (r *sharedRing) beginRead() {
	r.turn.Lock()
	r.mu.Lock()
}

func (r *sharedRing) endRead() {
	r.mu.Unlock()
	r.turn.Unlock()
}

// fill notes that readers may begin at the present state.
func (r *sharedRing) fill() {
	r.mu.Lock()
	defer r.endWrite()
	r.fillLocked()
}

func (r *sharedRing) fillLocked() {
	r.filled = true
	for rd := range r.waiting {
		r.beginLocked(rd)
	}
	r.waiting = nil
}

func (r *sharedRing) list() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listing++
}

// lists returns the numbers of the last list that has begun, and of the last list in the state.
func (r *sharedRing) lists() (listing, listed uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listing, r.listed
}

// stateLocked is the state after the changes in the timeline.
func (r *sharedRing) stateLocked() snapshot {
	if r.pinned != nil {
		return *r.pinned
	}
	return r.entries.Snapshot()
}

// pin makes state the present one for all readers, until replace. It reports whether a reader lags:
// none begins to lag before replace.
func (r *sharedRing) pin(state *snapshot) (lagging bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pinned = state
	return r.timeline.caughtUp < len(r.timeline.readers)
}

// replace notes a list, which made count changes. changes has them all, unless the timeline cannot
// hold them; before is the state before the list. deleted has the list's deletions if a reader
// lags.
func (r *sharedRing) replace(before snapshot, changes []noted, count int, deleted []event) {
	r.mu.Lock()
	defer r.endWrite()
	r.pinned = nil
	if len(changes) == count {
		r.timeline.add(changes...)
	} else {
		r.timeline.skip(count, before, deleted)
	}
	r.fillLocked()
	r.listed = r.listing
}

// enter adds a reader. It begins at the present state, or at the first whole state if there is none
// yet: it misses no change after that, however late it reads. It counts until it leaves.
func (r *sharedRing) enter() *reader {
	r.beginRead()
	defer r.endRead()
	rd := &reader{}
	if r.filled {
		r.beginLocked(rd)
		return rd
	}
	if r.waiting == nil {
		r.waiting = map[*reader]bool{}
	}
	r.waiting[rd] = true
	return rd
}

func (r *sharedRing) beginLocked(rd *reader) {
	r.timeline.enter(rd)
	rd.first = &reading{state: r.stateLocked(), next: rd.next, at: r.timeline.now()}
}

// begin returns the state at which the reader begins, once; ok is false if there is no whole state
// yet.
func (r *sharedRing) begin(rd *reader) (first reading, ok bool) {
	r.beginRead()
	defer r.endRead()
	if rd.first == nil {
		return first, false
	}
	first, rd.first = *rd.first, nil // the reader does not keep the state alive
	return first, true
}

// mayBegin reports whether there is a whole state for readers. In a union it is whole without a
// member that is refused.
func (r *sharedRing) mayBegin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.filled
}

// leave removes a reader.
func (r *sharedRing) leave(rd *reader) {
	r.beginRead()
	defer r.endRead()
	if r.waiting[rd] {
		delete(r.waiting, rd)
		return
	}
	r.timeline.leave(rd)
}

// read returns the changes since the reader's last reading, appended to into. whole asks for the
// state after them, too.
func (r *sharedRing) read(rd *reader, into []told, whole bool) reading {
	r.beginRead()
	defer r.endRead()
	got := reading{at: r.timeline.now()}
	got.events, got.gap = r.timeline.read(rd, into)
	got.next = rd.next
	if whole || got.gap != nil {
		got.state = r.stateLocked()
	}
	return got
}

// lag returns the number of changes from a place on. Their age is that of the first of them, or
// counts from since if the timeline has evicted it.
func (r *sharedRing) lag(place uint64, since time.Duration) Lag {
	r.beginRead()
	defer r.endRead()
	count, at, known := r.timeline.after(place)
	if count == 0 {
		return Lag{}
	}
	if !known {
		at = since
	}
	return Lag{Events: count, Age: r.timeline.now() - at}
}

// isTold reports whether nothing is left to tell from a place on. A list that is being compared is
// left, since readers of the store have it.
func (r *sharedRing) isTold(place uint64) bool {
	r.beginRead()
	defer r.endRead()
	count, _, _ := r.timeline.after(place)
	return count == 0 && r.pinned == nil
}

// age is how long ago a moment of the timeline was.
func (r *sharedRing) age(since time.Duration) time.Duration { return r.timeline.now() - since }

// holds reports whether a change of key in the timeline satisfies match.
func (r *sharedRing) holds(key string, match func(kind EventType, uid types.UID, version store.Version) bool) bool {
	r.beginRead()
	defer r.endRead()
	return r.timeline.holds(key, match)
}

// journal notes each change of a store in its ring, with one writer at a time. It writes the store
// before the ring, so a reader of a change finds it in the next snapshot.
type journal struct {
	entries *store.Entries
	ring    *sharedRing
}

func newJournal(capacity int, entries *store.Entries) *journal {
	return &journal{entries: entries, ring: newSharedRing(capacity, entries)}
}

// put stores an object in any form; missed marks a change that comes from a list.
func (j *journal) put(obj store.Entry, missed bool) error {
	j.ring.mu.Lock()
	defer j.ring.endWrite()
	c, err := j.entries.Put(obj)
	if err != nil {
		return err
	}
	switch {
	case c.Unchanged(): // a replay
	case c.Old == nil:
		j.ring.timeline.add(noted{told: told{event: event{Key: c.Key, New: c.New, Type: Added, Missed: missed}}})
	case c.Recreated(): // its deletion was not told
		j.ring.timeline.add(noted{told: told{event: event{Key: c.Key, Old: c.Old, Type: Deleted, Missed: true}}, had: c.Old},
			noted{told: told{event: event{Key: c.Key, New: c.New, Type: Added, Missed: missed}}})
	default:
		j.ring.timeline.add(noted{told: told{event: event{Key: c.Key, Old: c.Old, New: c.New, Type: Updated, Missed: missed}}})
	}
	return nil
}

// delete removes the object under obj's key; obj is its final state, which the ring keeps as the
// store would.
func (j *journal) delete(obj store.Entry) error {
	last, err := j.entries.Entry(obj)
	if err != nil {
		return err
	}
	return j.remove(last, func(held store.Entry) event {
		if held.GetUID() != last.GetUID() { // it is the final state of another object of that key
			return event{Old: held, Missed: true}
		}
		return event{Old: last}
	})
}

// drop removes the object under obj's key, in its stored state.
func (j *journal) drop(obj store.Entry, missed bool) error {
	return j.remove(obj, func(held store.Entry) event { return event{Old: held, Missed: missed} })
}

func (j *journal) remove(obj store.Entry, final func(held store.Entry) event) error {
	j.ring.mu.Lock()
	defer j.ring.endWrite()
	c, err := j.entries.Remove(obj)
	if err != nil {
		return err
	}
	if c.Unchanged() {
		return nil
	}
	e := final(c.Old)
	e.Key, e.Type, e.Final = c.Key, Deleted, !e.Missed
	j.ring.timeline.add(noted{told: told{event: e}, had: c.Old})
	return nil
}

func (j *journal) replace(items iter.Seq2[store.Entry, error], resourceVersion func() string) error {
	j.ring.list()
	var before snapshot
	if j.ring.filled { // otherwise no reader has begun
		before = j.entries.Snapshot()
	}
	lagging := j.ring.pin(&before)
	if err := j.entries.Replace(items, resourceVersion); err != nil {
		j.ring.pin(nil)
		return err
	}
	var changes []noted
	var deleted []event
	count := 0
	if j.ring.filled {
		for e := range difference(before, j.entries.Snapshot()) {
			if count++; count <= j.ring.timeline.capacity {
				changes = append(changes, noted{told: told{event: e}, had: e.Old})
			}
			if lagging && e.Type == Deleted {
				deleted = append(deleted, e)
			}
		}
	}
	j.ring.replace(before, changes, count, deleted)
	return nil
}

// bookmark notes that the content is complete up to resourceVersion.
func (j *journal) bookmark(resourceVersion string) error {
	j.ring.mu.Lock()
	defer j.ring.moved.Broadcast()
	defer j.ring.mu.Unlock()
	return j.entries.Bookmark(resourceVersion)
}

// anotherHistory needs nothing done: a journal compares no versions.
func (j *journal) anotherHistory() {}
