package informer

import (
	"iter"
	"maps"

	"github.com/tributary-go/tributary/store"
)

// past is an earlier state, as a later snapshot and the objects that some keys had before. So a
// state is known without a snapshot of its moment.
type past struct {
	later snapshot
	was   map[string]store.Entry // nil: there was no object
}

// undo removes a change from the state. Undo the oldest change of a key first: it has the key's
// object.
func (p *past) undo(change *noted) {
	if _, known := p.was[change.Key]; !known {
		p.was[change.Key] = change.before()
	}
}

// at is the object that the state has under key, or nil.
func (p *past) at(key string) store.Entry {
	obj, known := p.was[key]
	if !known {
		obj, _ = p.later.Get(key)
	}
	return obj
}

// gap stands for changes that a reader missed: the state before them, and the deletions among them.
type gap struct {
	before   *past
	deaths   []death
	complete bool // deaths has all deletions
}

// until yields the events that lead from the state before the gap to now: the lives that ended
// meanwhile, and then the changes of the survivors.
func (g *gap) until(now snapshot) iter.Seq[event] {
	return func(yield func(event) bool) {
		if told, goOn := g.lives(yield); goOn {
			told.survivors(now, yield)
		}
	}
}

// lives yields the deaths, in their order. An object that was also created meanwhile is Added
// before it is Deleted. It returns the state that was told: the state before, without the dead.
func (g *gap) lives(yield func(event) bool) (told past, goOn bool) {
	told = *g.before
	if len(g.deaths) == 0 {
		return told, true
	}
	told.was = maps.Clone(told.was) // readers share it
	for i := range g.deaths {
		d := &g.deaths[i]
		if !d.after(told.at(d.Key), yield) {
			return told, false
		}
		told.was[d.Key] = nil
	}
	return told, true
}

// survivors yields the events that turn p into now, as [difference] tells them.
func (p *past) survivors(now snapshot, yield func(event) bool) {
	for e := range difference(p.later, now) {
		if _, known := p.was[e.Key]; !known && !yield(e) {
			return
		}
	}
	for key, old := range p.was {
		obj, _ := now.Get(key)
		if !infer(store.Change[store.Entry]{Key: key, Old: old, New: obj}, yield) {
			return
		}
	}
}

// sameLife reports whether two states are of one object.
func sameLife(a, b store.Entry) bool {
	return a != nil && b != nil && a.GetUID() == b.GetUID()
}

// difference yields the events that turn before into after. Each key comes once, or as a deletion
// and then an addition.
func difference(before, after snapshot) iter.Seq[event] {
	return func(yield func(event) bool) {
		for c := range store.Diff(before, after) {
			if !infer(c, yield) {
				return
			}
		}
	}
}

// infer yields the events of a change between two states.
func infer(c store.Change[store.Entry], yield func(event) bool) bool {
	e := event{Key: c.Key, Old: c.Old, New: c.New, Type: Updated, Missed: true}
	switch {
	case c.Unchanged():
		return true
	case c.Recreated():
		return yield(event{Key: c.Key, Old: c.Old, Type: Deleted, Missed: true}) &&
			yield(event{Key: c.Key, New: c.New, Type: Added, Missed: true})
	case c.Added():
		e.Type = Added
	case c.Deleted():
		e.Type = Deleted
	}
	return yield(e)
}
