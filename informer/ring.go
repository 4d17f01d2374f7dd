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
type sharedRing[T store.Object] struct {
	changed signal.Signal // broadcast after each change of state

	// Readers take turns before they lock mu, so the writer waits for one of them at most, and they
	// find more changes at their turn. Under a RWMutex, readers park the writer at each event.
	turn sync.Mutex
	// The writer holds mu from a change of objects until the timeline has it, so the two agree for
	// the holder of mu.
	mu       sync.Mutex
	objects  *store.Indexer[T]
	pinned   *store.Snapshot[T] // the state before a list that the timeline does not have yet
	timeline timeline[T]
	filled   bool                // the state is, or follows, a whole state of the server
	waiting  map[*reader[T]]bool // they begin when the state is filled
	listing  uint64              // the number of the last list that has begun
	listed   uint64              // the number of the last list in the state
}

// reading is the result of a read: the changes since the reader's last reading, or a gap.
type reading[T store.Object] struct {
	events []told[T]
	gap    *gap[T]
	state  store.Snapshot[T] // the state after them, if there is a gap or the reader asks for it
	next   uint64            // the number of the first change that is not in the reading
	at     time.Duration
}

func newSharedRing[T store.Object](capacity int, objects *store.Indexer[T]) *sharedRing[T] {
	return &sharedRing[T]{objects: objects, timeline: newTimeline(capacity, objects.Snapshot)}
}

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

func (r *sharedRing[T]) wait() <-chan struct{} { return r.changed.Wait() }

// fill notes that readers may begin at the present state.
func (r *sharedRing[T]) fill() {
	r.mu.Lock()
	defer r.endWrite()
	r.fillLocked()
}

func (r *sharedRing[T]) fillLocked() {
	r.filled = true
	for rd := range r.waiting {
		r.beginLocked(rd)
	}
	r.waiting = nil
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

// stateLocked is the state after the changes in the timeline.
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
	return r.timeline.caughtUp < len(r.timeline.readers)
}

// replace notes a list, which made count changes. changes has them all, unless the timeline cannot
// hold them; before is the state before the list. deleted has the list's deletions if a reader
// lags.
func (r *sharedRing[T]) replace(before store.Snapshot[T], changes []noted[T], count int, deleted []Event[T]) {
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
func (r *sharedRing[T]) enter() *reader[T] {
	r.beginRead()
	defer r.endRead()
	rd := &reader[T]{}
	if r.filled {
		r.beginLocked(rd)
		return rd
	}
	if r.waiting == nil {
		r.waiting = map[*reader[T]]bool{}
	}
	r.waiting[rd] = true
	return rd
}

func (r *sharedRing[T]) beginLocked(rd *reader[T]) {
	r.timeline.enter(rd)
	rd.first = &reading[T]{state: r.stateLocked(), next: rd.next, at: r.timeline.now()}
}

// begin returns the state at which the reader begins, once; ok is false if there is no whole state
// yet.
func (r *sharedRing[T]) begin(rd *reader[T]) (first reading[T], ok bool) {
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
func (r *sharedRing[T]) mayBegin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.filled
}

// leave removes a reader.
func (r *sharedRing[T]) leave(rd *reader[T]) {
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
func (r *sharedRing[T]) read(rd *reader[T], into []told[T], whole bool) reading[T] {
	r.beginRead()
	defer r.endRead()
	got := reading[T]{at: r.timeline.now()}
	got.events, got.gap = r.timeline.read(rd, into)
	got.next = rd.next
	if whole || got.gap != nil {
		got.state = r.stateLocked()
	}
	return got
}

// lag returns the number of changes from a place on. Their age is that of the first of them, or
// counts from since if the timeline has evicted it.
func (r *sharedRing[T]) lag(place uint64, since time.Duration) Lag {
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
func (r *sharedRing[T]) isTold(place uint64) bool {
	r.beginRead()
	defer r.endRead()
	count, _, _ := r.timeline.after(place)
	return count == 0 && r.pinned == nil
}

// age is how long ago a moment of the timeline was.
func (r *sharedRing[T]) age(since time.Duration) time.Duration { return r.timeline.now() - since }

// holds reports whether a change of key in the timeline satisfies match.
func (r *sharedRing[T]) holds(key string, match func(kind EventType, uid types.UID, version store.Version) bool) bool {
	r.beginRead()
	defer r.endRead()
	return r.timeline.holds(key, match)
}

// journal is the [store.Store] of an informer's reflector, with one writer at a time. It writes the
// indexer before the ring, so a reader of a change finds it in the next snapshot.
type journal[T store.Object] struct {
	objects *store.Indexer[T]
	ring    *sharedRing[T]
}

func newJournal[T store.Object](capacity int, indexes ...store.AnyIndex[T]) *journal[T] {
	return journalOf(capacity, store.NewIndexer(indexes...))
}

func journalOf[T store.Object](capacity int, objects *store.Indexer[T]) *journal[T] {
	return &journal[T]{objects: objects, ring: newSharedRing(capacity, objects)}
}

func (j *journal[T]) Snapshot() store.Snapshot[T] { return j.objects.Snapshot() }

// Get reads one object without a snapshot. The reflector's source calls it for each event, and a
// snapshot would make each write copy its path.
func (j *journal[T]) Get(key string) (T, bool) { return j.objects.Get(key) }

func (j *journal[T]) Add(obj T) error { return j.put(obj, false) }

func (j *journal[T]) Update(obj T) error { return j.put(obj, false) }

// put stores obj; missed marks a change that comes from a list.
func (j *journal[T]) put(obj T, missed bool) error {
	j.ring.mu.Lock()
	defer j.ring.endWrite()
	c, err := j.objects.Put(obj)
	if err != nil {
		return err
	}
	switch {
	case c.Unchanged(): // a replay
	case c.Added():
		j.ring.timeline.add(noted[T]{told: told[T]{Event: Event[T]{Key: c.Key, New: c.New, Type: Added, Missed: missed}}})
	case c.Recreated(): // its deletion was not told
		j.ring.timeline.add(noted[T]{told: told[T]{Event: Event[T]{Key: c.Key, Old: c.Old, Type: Deleted, Missed: true}}, had: c.Old},
			noted[T]{told: told[T]{Event: Event[T]{Key: c.Key, New: c.New, Type: Added, Missed: missed}}})
	default:
		j.ring.timeline.add(noted[T]{told: told[T]{Event: Event[T]{Key: c.Key, Old: c.Old, New: c.New, Type: Updated, Missed: missed}}})
	}
	return nil
}

// Delete removes the object under obj's key; obj is its final state.
func (j *journal[T]) Delete(obj T) error {
	return j.remove(obj, func(held T) Event[T] {
		if held.GetUID() != obj.GetUID() { // obj is the final state of another object of that key
			return Event[T]{Old: held, Missed: true}
		}
		return Event[T]{Old: obj}
	})
}

// drop removes the object under obj's key, in its stored state.
func (j *journal[T]) drop(obj T, missed bool) error {
	return j.remove(obj, func(held T) Event[T] { return Event[T]{Old: held, Missed: missed} })
}

func (j *journal[T]) remove(obj T, final func(held T) Event[T]) error {
	j.ring.mu.Lock()
	defer j.ring.endWrite()
	c, err := j.objects.Remove(obj)
	if err != nil {
		return err
	}
	if c.Unchanged() {
		return nil
	}
	e := final(c.Old)
	e.Key, e.Type, e.Final = c.Key, Deleted, !e.Missed
	j.ring.timeline.add(noted[T]{told: told[T]{Event: e}, had: c.Old})
	return nil
}

func (j *journal[T]) Replace(items iter.Seq2[T, error], resourceVersion func() string) error {
	j.ring.list()
	var before store.Snapshot[T]
	if j.ring.filled { // otherwise no reader has begun
		before = j.objects.Snapshot()
	}
	lagging := j.ring.pin(&before)
	if err := j.objects.Replace(items, resourceVersion); err != nil {
		j.ring.pin(nil)
		return err
	}
	var changes []noted[T]
	var deleted []Event[T]
	count := 0
	if j.ring.filled {
		for e := range difference(before, j.objects.Snapshot()) {
			if count++; count <= j.ring.timeline.capacity {
				changes = append(changes, noted[T]{told: told[T]{Event: e}, had: e.Old})
			}
			if lagging && e.Type == Deleted {
				deleted = append(deleted, e)
			}
		}
	}
	j.ring.replace(before, changes, count, deleted)
	return nil
}

// Bookmark notes that the content is complete up to resourceVersion.
func (j *journal[T]) Bookmark(resourceVersion string) error {
	j.ring.mu.Lock()
	defer j.ring.endWrite()
	return j.objects.Bookmark(resourceVersion)
}
