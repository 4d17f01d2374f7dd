package informer

import (
	"iter"

	"github.com/tributary-go/tributary/store"
)

// past is an earlier state, as a later snapshot and the objects that some keys had before. So a
// state is known without a snapshot of its moment.
type past[T store.Object] struct {
	later store.Snapshot[T]
	was   map[string]T // the zero T: there was no object
}

// undo removes a change from the state. Undo the oldest change of a key first: it has the key's
// object.
func (p *past[T]) undo(change *noted[T]) {
	if _, known := p.was[change.Key]; !known {
		p.was[change.Key] = change.before()
	}
}

// until yields the events that turn p into now, as [difference] does.
func (p *past[T]) until(now store.Snapshot[T]) iter.Seq[Event[T]] {
	return func(yield func(Event[T]) bool) {
		for e := range difference(p.later, now) {
			if _, known := p.was[e.Key]; !known && !yield(e) {
				return
			}
		}
		for key, old := range p.was {
			obj, _ := now.Get(key)
			if !infer(store.Change[T]{Key: key, Old: old, New: obj}, yield) {
				return
			}
		}
	}
}

// difference yields the events that turn before into after. Each key comes once, or as a deletion
// and then an addition.
func difference[T store.Object](before, after store.Snapshot[T]) iter.Seq[Event[T]] {
	return func(yield func(Event[T]) bool) {
		for c := range store.Diff(before, after) {
			if !infer(c, yield) {
				return
			}
		}
	}
}

// infer yields the events of a change between two states.
func infer[T store.Object](c store.Change[T], yield func(Event[T]) bool) bool {
	e := Event[T]{Key: c.Key, Old: c.Old, New: c.New, Type: Updated, Missed: true}
	switch {
	case c.Unchanged():
		return true
	case c.Recreated():
		return yield(Event[T]{Key: c.Key, Old: c.Old, Type: Deleted, Missed: true}) &&
			yield(Event[T]{Key: c.Key, New: c.New, Type: Added, Missed: true})
	case c.Added():
		e.Type = Added
	case c.Deleted():
		e.Type = Deleted
	}
	return yield(e)
}
