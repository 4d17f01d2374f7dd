package informer

import (
	"iter"

	"github.com/tributary-go/tributary/store"
)

// journal is the [store.Store] that an informer's reflector writes into: an indexer, and a ring of its last changes.
// The indexer always goes first, so that whoever is told of a change finds it in the snapshot. It has one writer.
type journal[T store.Object] struct {
	objects *store.Indexer[T]
	ring    *ring[T]
}

// Snapshot is the content now.
func (j *journal[T]) Snapshot() store.Snapshot[T] { return j.objects.Snapshot() }

// Add stores obj and notes what that changed.
func (j *journal[T]) Add(obj T) error { return j.put(obj, j.objects.Add) }

// Update stores obj and notes what that changed.
func (j *journal[T]) Update(obj T) error { return j.put(obj, j.objects.Update) }

func (j *journal[T]) put(obj T, write func(T) error) error {
	before := j.objects.Snapshot()
	if err := write(obj); err != nil {
		return err
	}
	state := j.objects.Snapshot()
	key := store.KeyOf(obj)
	old, held := before.Get(key)
	if !held {
		j.ring.add(state, Event[T]{Key: key, New: obj, Type: Added})
		return nil
	}
	switch now, _ := state.Get(key); {
	case now == old: // a replay
		j.ring.add(state)
	case old.GetUID() != now.GetUID(): // its deletion was never told
		j.ring.add(state, Event[T]{Key: key, Old: old, Type: Deleted, Missed: true}, Event[T]{Key: key, New: now, Type: Added})
	default:
		j.ring.add(state, Event[T]{Key: key, Old: old, New: now, Type: Updated})
	}
	return nil
}

// Delete removes what is stored under obj's key; obj is the final state that is noted.
func (j *journal[T]) Delete(obj T) error {
	before := j.objects.Snapshot()
	if err := j.objects.Delete(obj); err != nil {
		return err
	}
	key := store.KeyOf(obj)
	old, held := before.Get(key)
	switch state := j.objects.Snapshot(); {
	case !held:
		j.ring.add(state)
	case old.GetUID() != obj.GetUID(): // the final state of another object under the key is not this one's
		j.ring.add(state, Event[T]{Key: key, Old: old, Type: Deleted, Missed: true})
	default:
		j.ring.add(state, Event[T]{Key: key, Old: obj, Type: Deleted})
	}
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
		if count++; count <= len(j.ring.slots) {
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
