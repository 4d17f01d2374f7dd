package informer

import (
	"iter"

	"github.com/tributary-go/tributary/store"
)

// journal is the [store.Store] that an informer's reflector writes into: an indexer, and a ring of its last changes.
// The indexer always goes first, so that whoever is told of a change finds it in the snapshot. It has one writer
// at a time.
type journal[T store.Object] struct {
	objects *store.Indexer[T]
	ring    *sharedRing[T]
}

// Snapshot is the content now.
func (j *journal[T]) Snapshot() store.Snapshot[T] { return j.objects.Snapshot() }

// Add stores obj and notes what that changed.
func (j *journal[T]) Add(obj T) error { return j.put(obj, false) }

// Update does what Add does.
func (j *journal[T]) Update(obj T) error { return j.put(obj, false) }

// put stores obj; missed marks what comes of a list and not of a watch.
func (j *journal[T]) put(obj T, missed bool) error {
	c, err := j.objects.Put(obj)
	if err != nil {
		return err
	}
	state := j.objects.Snapshot()
	switch {
	case c.Unchanged(): // a replay
		j.ring.add(state)
	case c.Added():
		j.ring.add(state, Event[T]{Key: c.Key, New: c.New, Type: Added, Missed: missed})
	case c.Recreated(): // its deletion was never told
		j.ring.add(state, Event[T]{Key: c.Key, Old: c.Old, Type: Deleted, Missed: true},
			Event[T]{Key: c.Key, New: c.New, Type: Added, Missed: missed})
	default:
		j.ring.add(state, Event[T]{Key: c.Key, Old: c.Old, New: c.New, Type: Updated, Missed: missed})
	}
	return nil
}

// Delete removes what is stored under obj's key; obj is the final state that is noted.
func (j *journal[T]) Delete(obj T) error {
	c, err := j.objects.Remove(obj)
	if err != nil {
		return err
	}
	state := j.objects.Snapshot()
	switch {
	case c.Unchanged():
		j.ring.add(state)
	case c.Old.GetUID() != obj.GetUID(): // the final state of another object under the key is not this one's
		j.ring.add(state, Event[T]{Key: c.Key, Old: c.Old, Type: Deleted, Missed: true})
	default:
		j.ring.add(state, Event[T]{Key: c.Key, Old: obj, Type: Deleted})
	}
	return nil
}

// drop removes what is stored under key, in the state that is stored.
func (j *journal[T]) drop(obj T, missed bool) error {
	c, err := j.objects.Remove(obj)
	if err != nil {
		return err
	}
	j.ring.add(j.objects.Snapshot(), Event[T]{Key: c.Key, Old: c.Old, Type: Deleted, Missed: missed})
	return nil
}

// Replace makes items the whole content, and notes the difference.
func (j *journal[T]) Replace(items iter.Seq2[T, error], resourceVersion func() string) error {
	j.ring.list()
	before := j.objects.Snapshot()
	if err := j.objects.Replace(items, resourceVersion); err != nil {
		return err
	}
	state := j.objects.Snapshot()
	if !j.ring.filled { // nobody has been told of anything
		j.ring.replace(state, nil, 0)
		return nil
	}
	var events []Event[T]
	count := 0
	for e := range difference(before, state) {
		if count++; count <= j.ring.changes.Cap() {
			events = append(events, e)
		}
	}
	j.ring.replace(state, events, count)
	return nil
}

// Bookmark notes that the content is complete up to resourceVersion.
func (j *journal[T]) Bookmark(resourceVersion string) error {
	if err := j.objects.Bookmark(resourceVersion); err != nil {
		return err
	}
	j.ring.add(j.objects.Snapshot())
	return nil
}

// difference is what turns before into after, as events. Each key comes once, or as a deletion and then an addition.
func difference[T store.Object](before, after store.Snapshot[T]) iter.Seq[Event[T]] {
	return func(yield func(Event[T]) bool) {
		for c := range store.Diff(before, after) {
			e := Event[T]{Key: c.Key, Old: c.Old, New: c.New, Type: Updated, Missed: true}
			switch {
			case c.Added():
				e.Type = Added
			case c.Deleted():
				e.Type = Deleted
			}
			if !yield(e) {
				return
			}
		}
	}
}
