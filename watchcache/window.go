package watchcache

import (
	"sort"
	"sync/atomic"
	"time"

	"github.com/tributary-go/tributary/internal/ring"
	"github.com/tributary-go/tributary/store"
)

// window is the last changes, with what is known of the versions before them. A watcher's position
// is the number of the next change that it wants. The cache's mu guards all but Read.
type window[T store.Object] struct {
	*ring.Shared[change[T]]
	limits  limits
	bytes   atomic.Int64 // the weight of the changes held
	backlog backlog[T]

	// floor is the oldest version from which every change is held; from complete on, until the
	// oldest change, the content was what it was just before that change.
	floor    uint64
	complete uint64
}

// limits bound a window. The newest change always stays.
type limits struct {
	events int
	bytes  int64
	age    time.Duration
}

// alwaysKept is how many changes stay whatever their age, as far as events and bytes allow: a quiet
// collection remembers more than its last minute.
const alwaysKept = 1024

func newWindow[T store.Object](c config) window[T] {
	return window[T]{
		Shared:  ring.NewShared[change[T]](),
		limits:  limits{events: c.window, bytes: c.windowBytes / 2, age: c.windowAge},
		backlog: backlog[T]{most: c.windowBytes / 4},
	}
}

// note appends a change, and drops the oldest changes that are out of bounds. Versions must not
// decrease.
func (w *window[T]) note(c *change[T]) {
	c.number = w.Next()
	w.bytes.Add(c.weight)
	w.Add(c)
	for w.Len() > 1 && w.outOfBounds(c.at) {
		w.drop()
	}
	w.backlog.trim()
}

func (w *window[T]) outOfBounds(now time.Duration) bool {
	return w.Len() > w.limits.events || w.bytes.Load() > w.limits.bytes ||
		w.Len() > alwaysKept && now-w.At(w.First()).at > w.limits.age
}

// drop forgets the oldest change. Lanes with a watcher that has not read it keep it.
func (w *window[T]) drop() {
	oldest := w.Drop()
	w.floor, w.complete = oldest.version, oldest.complete
	w.bytes.Add(-oldest.retire())
	for _, l := range oldest.lanes {
		if l.keep(oldest) {
			w.backlog.add(l, oldest)
		}
	}
	oldest.lanes = nil
}

// clear forgets all changes: the history begins with the present content at version. Watchers that
// had read everything go on, unless lost says that there is something which they will never see.
func (w *window[T]) clear(version uint64, lost bool) {
	for w.Len() > 0 {
		w.drop()
	}
	if lost {
		w.Skip(1)
	}
	w.floor, w.complete = version, version
}

// after is the position from which a watcher sees all changes after version; ok is false when some
// are gone.
func (w *window[T]) after(version uint64) (position uint64, ok bool) {
	if version < w.floor {
		return 0, false
	}
	return w.First() + uint64(sort.Search(w.Len(), func(i int) bool {
		return w.At(w.First()+uint64(i)).version > version
	})), true
}

// since is the position of the first change that the content at a version has not seen; ok is false
// where the window no longer knows that content.
func (w *window[T]) since(version uint64) (position uint64, ok bool) {
	position, ok = w.after(version)
	if !ok {
		return 0, false
	}
	if position < w.Next() {
		if c := w.At(position); c.gap && version > c.before {
			return 0, false
		}
	}
	complete := w.complete
	if position > w.First() {
		complete = w.At(position - 1).complete
	}
	return position, version >= complete
}
