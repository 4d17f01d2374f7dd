package watchcache

import (
	"sort"

	"github.com/tributary-go/tributary/store"
)

// window is a ring of the last changes, oldest first. Changes have sequence numbers that never repeat: a watcher's
// position is the number of the next change it wants. Not safe for concurrent use.
type window[T store.Object] struct {
	ring        []*change[T] // the change with number n is in slot n % len(ring)
	first, next uint64       // the numbers of the oldest change held and of the next one to come

	// floor is the oldest version from which every change is held; base is the content from version complete on,
	// until the oldest change.
	floor    uint64
	base     store.Snapshot[T]
	complete uint64
}

func newWindow[T store.Object](capacity int) window[T] {
	return window[T]{ring: make([]*change[T], capacity)}
}

func (w *window[T]) at(number uint64) *change[T] { return w.ring[number%uint64(len(w.ring))] }

// add appends a change, over the oldest one when the ring is full. Versions must not decrease.
func (w *window[T]) add(c *change[T]) {
	if w.next-w.first == uint64(len(w.ring)) {
		oldest := w.at(w.first)
		w.floor, w.base, w.complete = oldest.version, oldest.state, oldest.complete
		w.first++
	}
	c.text = formatVersion(c.version)
	w.ring[w.next%uint64(len(w.ring))] = c
	w.next++
}

// clear forgets all changes: the history begins with state at version. Watchers that had read everything go on,
// unless lost says that there is something which they will never see.
func (w *window[T]) clear(version uint64, state store.Snapshot[T], lost bool) {
	clear(w.ring)
	if lost {
		w.next++
	}
	w.first = w.next
	w.floor, w.base, w.complete = version, state, version
}

// after is the position from which a watcher sees all changes after version; ok is false when some are gone.
func (w *window[T]) after(version uint64) (position uint64, ok bool) {
	if version < w.floor {
		return 0, false
	}
	held := int(w.next - w.first)
	return w.first + uint64(sort.Search(held, func(i int) bool {
		return w.at(w.first+uint64(i)).version > version
	})), true
}

// read appends changes from position on, as many as into has room for; ok is false when the first is gone.
func (w *window[T]) read(position uint64, into []*change[T]) (_ []*change[T], ok bool) {
	if position < w.first {
		return into, false
	}
	for ; position < w.next && len(into) < cap(into); position++ {
		into = append(into, w.at(position))
	}
	return into, true
}

// stateAt is the state at a version, where the window still knows it.
func (w *window[T]) stateAt(version uint64) (state store.Snapshot[T], ok bool) {
	next, ok := w.after(version)
	if !ok {
		return state, false
	}
	if next < w.next {
		if c := w.at(next); c.gap && version > c.before {
			return state, false
		}
	}
	if next == w.first {
		return w.base, version >= w.complete
	}
	last := w.at(next - 1)
	return last.state, version >= last.complete
}
