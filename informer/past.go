package informer

import (
	"iter"
	"maps"

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

// gap stands for changes that a reader missed: the state before them, and the deletions among them.
type gap[T store.Object] struct {
	before   *past[T]
	deaths   []death[T]
	complete bool // deaths has all deletions
}

// until yields the events that lead from the state before the gap to now: the lives that ended
// meanwhile, and then the changes of the survivors.
func (g *gap[T]) until(now store.Snapshot[T]) iter.Seq[Event[T]] {
	return func(yield func(Event[T]) bool) {
		if told, goOn := g.lives(yield); goOn {
			told.survivors(now, yield)
		}
	}
}

// lives yields the deaths, in their order. An object that was also created meanwhile is Added
// before it is Deleted. It returns the state that was told: the state before, without the dead.
func (g *gap[T]) lives(yield func(Event[T]) bool) (told past[T], goOn bool) {
	told = *g.before
	if len(g.deaths) == 0 {
		return told, true
	}
	told.was = maps.Clone(told.was) // readers share it
	var none T
	for i := range g.deaths {
		d := &g.deaths[i]
		if !d.after(told.at(d.Key), yield) {
			return told, false
		}
		told.was[d.Key] = none
	}
	return told, true
}

// survivors yields the events that turn p into now, as [difference] tells them.
func (p *past[T]) survivors(now store.Snapshot[T], yield func(Event[T]) bool) {
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
