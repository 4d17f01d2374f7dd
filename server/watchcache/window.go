package watchcache

import (
	"slices"
	"sort"
	"time"

	"github.com/tributary-go/tributary/internal/ring"
	"github.com/tributary-go/tributary/store"
)

// window is the last changes. A watcher's position is the number of the next change that it wants.
// The cache's mu guards all but Read and read.
type window[T store.Object] struct {
	*ring.Shared[change[T]]
	limits  limits
	lostBy  cause // why it has dropped changes, the last time
	bytes   int64 // the weight of the changes held
	backlog backlog[T]

	// floor is the oldest version from which the window has every change. From complete until the
	// oldest change the content did not change.
	floor    uint64
	complete uint64
	gaps     []*gap // oldest first
	gapless  uint64 // the end of the last gap that is no longer remembered
	cleared  uint64 // how often all changes were forgotten
}

// mostGaps bounds the gaps that a quiet collection remembers.
const mostGaps = 64

// limits bound a window. The newest change always stays.
type limits struct {
	events int
	bytes  int64
}

// windowAge is how long changes stay, as far as events and bytes allow. The API server sizes its
// window for that: it is longer than a client takes to come back.
const windowAge = 75 * time.Second

// alwaysKept is the number of changes that stay at any age, as far as events and bytes allow: a
// quiet collection remembers more than its last minute.
const alwaysKept = 1024

func newWindow[T store.Object](c config) window[T] {
	return window[T]{
		Shared:  ring.NewShared[change[T]](),
		limits:  limits{events: c.window, bytes: c.windowBytes / 2},
		backlog: backlog[T]{most: c.windowBytes / 4},
	}
}

// note appends a change, and drops the oldest changes that are out of bounds. Versions must not
// decrease.
func (w *window[T]) note(c *change[T]) {
	c.number = w.Next()
	w.bytes += c.weight
	w.Add(c)
	for w.Len() > 1 {
		why, over := w.outOfBounds(c.at)
		if !over {
			break
		}
		w.lostBy = why
		w.drop()
	}
}

func (w *window[T]) outOfBounds(now time.Duration) (why cause, over bool) {
	switch {
	case w.Len() > w.limits.events:
		return overCount, true
	case w.bytes > w.limits.bytes:
		return overBytes, true
	}
	return overAge, w.Len() > alwaysKept && now-w.At(w.First()).at > windowAge
}

// drop forgets the oldest change. Histories with a reader that has still to read it keep it.
func (w *window[T]) drop() {
	oldest := w.Drop()
	w.floor, w.complete = oldest.version, oldest.complete
	w.bytes -= oldest.weight
	oldest.retire()
	if oldest.awaited.Load() > 0 { // else the memory of the histories is not even touched
		for _, h := range oldest.histories {
			h.dropped(oldest)
		}
	}
	oldest.histories = nil
}

// read copies the next changes from position on; ok is false if the first of them is gone.
func (w *window[T]) read(position uint64, into []seen[T]) (n int, ok bool) {
	for ; n < len(into); n++ {
		c, ok := w.Read(position + uint64(n))
		if c == nil || !ok {
			return n, n > 0 || ok
		}
		into[n] = seen[T]{c, c.effect()}
	}
	return n, true
}

// skip notes a gap.
func (w *window[T]) skip(g *gap) {
	if len(w.gaps) == mostGaps {
		w.floor = max(w.floor, w.gaps[0].to)
	}
	for len(w.gaps) > 0 && w.gaps[0].to <= w.floor {
		w.gapless = w.gaps[0].to
		w.gaps = slices.Delete(w.gaps, 0, 1)
	}
	w.gaps = append(w.gaps, g)
}

// skipped reports whether a version may be one that a Replace has skipped.
func (w *window[T]) skipped(version uint64) bool {
	return version < w.gapless || slices.ContainsFunc(w.gaps, func(g *gap) bool { return g.holds(version) })
}

// knows reports whether the changes tell the content at a version.
func (w *window[T]) knows(version uint64) bool {
	return version >= w.floor && !slices.ContainsFunc(w.gaps, func(g *gap) bool { return g.holds(version) })
}

// clear forgets all changes: the history begins with the present content at version. Watchers that
// had read everything go on, unless they have lost changes that they will never see.
func (w *window[T]) clear(version uint64, lost bool) {
	for w.Len() > 0 {
		w.drop()
	}
	if lost {
		w.Skip(1)
	}
	if n := len(w.gaps); n > 0 {
		w.gapless = w.gaps[n-1].to
	}
	w.gapless = min(w.gapless, version) // else it is of another history
	w.floor, w.complete, w.gaps = version, version, nil
	w.cleared++
}

// after is the position from which a watcher sees all changes after version; ok is false when some
// are gone, or were never seen.
func (w *window[T]) after(version uint64) (position uint64, ok bool) {
	if !w.knows(version) {
		return 0, false
	}
	return w.First() + uint64(sort.Search(w.Len(), func(i int) bool {
		return w.At(w.First()+uint64(i)).version > version
	})), true
}

// since is the position of the first change after the content at a version; ok is false if the
// window no longer knows that content.
func (w *window[T]) since(version uint64) (position uint64, ok bool) {
	position, ok = w.after(version)
	if !ok {
		return 0, false
	}
	complete := w.complete
	if position > w.First() {
		complete = w.At(position - 1).complete
	}
	return position, version >= complete
}
