package watchcache

import (
	"slices"
	"sort"
	"sync"

	"github.com/tributary-go/tributary/store"
)

// history is the changes of one selection that some reader has still to read, oldest first. It
// keeps them when the window drops them. The window's limit bounds their number, and the backlog
// bounds their bytes.
//
// The window tells a history when it drops one change: the oldest of the history that the window
// still holds. So one change at a time lists the history, and not all of its changes.
type history[T store.Object] struct {
	mu      sync.Mutex // guards the history, but for its last two fields; taken after the cache's
	readers int
	last    uint64 // one more than the number of the last change that came
	gone    uint64 // one more than the number of the last change that was lost

	noted   *change[T] // the change that lists the history; nil if the window holds none
	changes []seen[T]
	few     [1]seen[T] // room for a single change
	room    int        // for how many changes the list has been charged
	kept    int        // how many of the oldest changes the window has dropped

	window *window[T]
	weight int64 // of the changes that are kept, and of the list
	lostBy cause // why changes were lost, the last time

	// Guarded by the cache's mu.
	queued    bool   // in the queue of the backlog
	lastNoted uint64 // the change that may still list the history
}

// seen is a change with its effect on one selection.
type seen[T store.Object] struct {
	*change[T]
	as effect
}

// append takes a new change in. The cache's mu and the history's are held.
func (h *history[T]) append(c seen[T]) {
	if len(h.changes) == 0 {
		h.changes = h.few[:0]
	}
	h.changes = append(h.changes, c)
	h.settle(&c.cache.window) // h.window is in a third cache line
}

// splice makes own the changes from the first of own on, for a reader that comes. own has all that
// the selection sees from there on. The other readers have read the changes that are not listed.
// The cache's mu and the history's are held.
func (h *history[T]) splice(own []seen[T]) {
	from := h.search(own[0].number)
	h.giveBack(h.changes[min(from, h.kept):h.kept])
	h.changes = append(h.changes[:from:from], own...)
	h.last = max(h.last, own[len(own)-1].number+1)
	h.charge()
	h.settle(h.window)
}

// settle keeps the changes that the window has dropped, notes the oldest that the window holds, and
// bounds the list. The cache's mu and the history's are held.
func (h *history[T]) settle(w *window[T]) {
	for ; h.kept < len(h.changes) && h.changes[h.kept].number < w.First(); h.kept++ {
		h.weight += h.changes[h.kept].weight
		w.backlog.add(h, h.changes[h.kept].change)
	}
	if h.kept < len(h.changes) {
		if c := h.changes[h.kept].change; h.noted == nil || h.noted.number > c.number {
			h.unnote()
			c.histories = append(c.histories, h)
			c.awaited.Add(1)
			h.noted, h.lastNoted = c, c.number
		}
	}
	if cap(h.changes) > max(h.room, len(h.few)) {
		h.charge()
	}
	h.lose(len(h.changes)-w.limits.events, overCount)
}

func (h *history[T]) unnote() {
	if h.noted != nil {
		h.noted.awaited.Add(-1)
		h.noted = nil
	}
}

// isNoted reports whether the window tells the history when it drops a change.
func (h *history[T]) isNoted(c *change[T]) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.noted == c
}

// dropped tells the history that the window has dropped a change. The cache's mu is held.
func (h *history[T]) dropped(c *change[T]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.noted == c {
		h.unnote()
		h.settle(h.window)
	}
}

// read copies the next changes from position on; ok is false if the first of them is lost. A single
// reader has no more use for the changes before position.
func (h *history[T]) read(position uint64, into []seen[T]) (n int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if position < h.gone {
		return 0, false
	}
	next := h.search(position)
	if h.readers == 1 && next > 0 {
		h.forget(next)
		next = 0
	}
	return copy(into, h.changes[next:]), true
}

// tellable reports whether the readers can be told of a gap, from its first change on. All changes
// of the gap have been entered.
func (h *history[T]) tellable(first *change[T]) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if first.number < h.gone {
		return false
	}
	rest := h.changes[h.search(first.number):]
	if end := slices.IndexFunc(rest, func(c seen[T]) bool { return c.gap != first.gap }); end >= 0 {
		rest = rest[:end]
	}
	return tellable(rest)
}

// search is the index of the first change that is not before position.
func (h *history[T]) search(position uint64) int {
	if len(h.changes) > 0 && h.changes[0].number >= position {
		return 0
	}
	return sort.Search(len(h.changes), func(i int) bool { return h.changes[i].number >= position })
}

// forget drops the n oldest changes, which no reader has still to read.
func (h *history[T]) forget(n int) {
	if h.kept > 0 {
		h.giveBack(h.changes[:min(n, h.kept)])
	}
	clear(h.changes[:n])
	if h.changes = h.changes[n:]; len(h.changes) > 0 {
		return
	}
	h.changes = nil
	h.unnote()
	if h.room > 0 {
		h.charge()
	}
}

// giveBack ends the keeping of changes.
func (h *history[T]) giveBack(changes []seen[T]) {
	for _, c := range changes {
		h.weight -= c.weight
		h.window.backlog.giveBack(c.change)
	}
	h.kept -= len(changes)
}

// lose drops the n oldest changes: the readers that have still to read them get a 410.
func (h *history[T]) lose(n int, why cause) {
	if n > 0 {
		h.lostBy = why
		h.gone = h.changes[n-1].number + 1
		h.forget(n)
	}
}

// loseAll makes every reader that is not beyond number get a 410.
func (h *history[T]) loseAll(number uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(len(h.changes))
	h.gone = number
}

// loseOver drops the oldest changes, until the rest weighs no more than share, but one at least. A
// single reader loses them all: it gets a 410 in any case. It returns their number.
func (h *history[T]) loseOver(share int64) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for weight := h.weight; n < len(h.changes) && (weight > share || n == 0 || h.readers == 1); n++ {
		if weight -= listedWeight; n < h.kept {
			weight -= h.changes[n].weight
		}
	}
	h.lose(n, overBytes)
	return n
}

// charge charges the backlog for the list, which has become another one. If the list has grown, the
// cache's mu is held.
func (h *history[T]) charge() {
	room := cap(h.changes)
	if room <= len(h.few) { // a part of the history
		room = 0
	}
	h.weight += h.window.backlog.charge(h, h.room, room)
	h.room = room
}

func (h *history[T]) weighs() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.weight
}
