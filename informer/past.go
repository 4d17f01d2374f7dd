package informer

import (
	"iter"

	"github.com/tributary-go/tributary/internal/pointer"
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

// at is the object that the state has under key, or the zero T.
func (p *past[T]) at(key string) T {
	obj, known := p.was[key]
	if !known {
		obj, _ = p.later.Get(key)
	}
	return obj
}

// until yields the events that turn p into now. First come the deaths in between, in their order.
// An object that was also created in between is Added before it is Deleted. Then come the changes
// of what is left, as [difference] tells them.
func (p *past[T]) until(deaths []death[T], now store.Snapshot[T]) iter.Seq[Event[T]] {
	return func(yield func(Event[T]) bool) {
		dead := map[string]bool{} // the keys whose object was told as Deleted
		for i := range deaths {
			var held T
			if key := deaths[i].Key; !dead[key] {
				held, dead[key] = p.at(key), true
			}
			if !deaths[i].after(held, yield) {
				return
			}
		}
		for e := range difference(p.later, now) {
			if _, known := p.was[e.Key]; !known && !dead[e.Key] && !yield(e) {
				return
			}
		}
		for key, old := range p.was {
			obj, _ := now.Get(key)
			if !dead[key] && !infer(store.Change[T]{Key: key, Old: old, New: obj}, yield) {
				return
			}
		}
		for key := range dead {
			obj, _ := now.Get(key)
			if !infer(store.Change[T]{Key: key, New: obj}, yield) {
				return
			}
		}
	}
}

// after yields the events that lead from held to the deletion.
func (d *death[T]) after(held T, yield func(Event[T]) bool) bool {
	var none T
	// The deletion of the held life was not told, or is forgotten.
	if !pointer.None(held) && !sameLife(held, d.had) {
		if !infer(store.Change[T]{Key: d.Key, Old: held}, yield) {
			return false
		}
		held = none
	}
	// A known object's last update is told only if the deletion does not bring a newer state.
	if pointer.None(held) || !d.Final {
		if !infer(store.Change[T]{Key: d.Key, Old: held, New: d.had}, yield) {
			return false
		}
	}
	e := d.Event
	e.Missed = true
	return yield(e)
}

// sameLife reports whether two states are of one object.
func sameLife[T store.Object](a, b T) bool {
	return !pointer.None(a) && !pointer.None(b) && a.GetUID() == b.GetUID()
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
