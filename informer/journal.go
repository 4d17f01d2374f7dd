package informer

import (
	"iter"

	"github.com/tributary-go/tributary/store"
)

// journal is the [store.Store] of an informer's reflector, with one writer at a time. It writes the
// indexer before the ring, so a reader of a change finds it in the next snapshot.
type journal[T store.Object] struct {
	objects *store.Indexer[T]
	ring    *sharedRing[T]
}

func newJournal[T store.Object](capacity int, indexes ...store.AnyIndex[T]) *journal[T] {
	objects := store.NewIndexer(indexes...)
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
			if count++; count <= len(j.ring.timeline.slots) {
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
