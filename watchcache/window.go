package watchcache

import (
	"sort"

	"github.com/tributary-go/tributary/internal/ring"
	"github.com/tributary-go/tributary/store"
)

// window is the last changes, with what is known of the versions before them. A watcher's position
// is the number of the next change that it wants. Not safe for concurrent use.
type window[T store.Object] struct {
	ring.Ring[*change[T]]

	// floor is the oldest version from which every change is held; base is the content from version
	// complete on, until the oldest change.
	floor    uint64
	base     store.Snapshot[T]
	complete uint64
}

func newWindow[T store.Object](capacity int) window[T] {
	return window[T]{Ring: ring.New[*change[T]](capacity)}
}

// note appends a change, over the oldest one when the ring is full. Versions must not decrease.
func (w *window[T]) note(c *change[T]) {
	if w.Full() {
		oldest := w.At(w.First())
		w.floor, w.base, w.complete = oldest.version, oldest.state, oldest.complete
	}
	c.text = formatVersion(c.version)
	w.Add(c)
}

// clear forgets all changes: the history begins with state at version. Watchers that had read
// everything go on, unless lost says that there is something which they will never see.
func (w *window[T]) clear(version uint64, state store.Snapshot[T], lost bool) {
	skipped := uint64(0)
	if lost {
		skipped = 1
	}
	w.Skip(skipped)
	w.floor, w.base, w.complete = version, state, version
}

// after is the position from which a watcher sees all changes after version; ok is false when some
// are gone.
func (w *window[T]) after(version uint64) (position uint64, ok bool) {
	if version < w.floor {
		return 0, false
	}
	held := int(w.Next() - w.First())
	return w.First() + uint64(sort.Search(held, func(i int) bool {
		return w.At(w.First()+uint64(i)).version > version
	})), true
}

// stateAt is the state at a version, where the window still knows it.
func (w *window[T]) stateAt(version uint64) (state store.Snapshot[T], ok bool) {
	next, ok := w.after(version)
	if !ok {
		return state, false
	}
	if next < w.Next() {
		if c := w.At(next); c.gap && version > c.before {
			return state, false
		}
	}
	if next == w.First() {
		return w.base, version >= w.complete
	}
	last := w.At(next - 1)
	return last.state, version >= last.complete
}
