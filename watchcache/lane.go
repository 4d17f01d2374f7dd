package watchcache

import (
	"context"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/tributary-go/tributary/store"
)

// lane is where the watchers of one value wait, such as those of one node: a change of an object
// that does not have the value, before or after, neither wakes nor delays them. It lists the
// changes of its value that a watcher has still to read, and keeps them when the window drops them.
//
// The lane of everything lists none: its watchers read the window.
type lane[T store.Object] struct {
	trigger *trigger[T] // nil for everything
	value   string

	mu      sync.Mutex // guards what follows; taken after the cache's
	members int        // watchers that read here
	parked  *Watcher[T]
	waiting int          // how many are parked
	changes []*change[T] // what some member has not read, oldest first
	kept    int          // how many of them the window has dropped
	gone    uint64       // one more than the number of the last change that was dropped unread
	last    uint64       // one more than the number of the last change that came
	few     [1]*change[T]
}

// add takes a change in, and returns the watchers to wake: see [wakeAll].
func (l *lane[T]) add(c *change[T], w *window[T]) *Watcher[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trigger != nil {
		if len(l.changes) == 0 {
			l.changes = l.few[:0]
		}
		l.changes = append(l.changes, c)
		if len(l.changes) > w.limits.events {
			l.lose(1, &w.backlog)
		}
	}
	l.last = c.number + 1
	return l.takeParked()
}

// takeParked empties the list of parked watchers, which is for the caller to wake.
func (l *lane[T]) takeParked() *Watcher[T] {
	first := l.parked
	l.parked, l.waiting = nil, 0
	for w := first; w != nil; w = w.nextParked {
		w.isParked = false
	}
	return first
}

// keep is told that the window drops a change. It reports whether the lane keeps it, because a
// member may not have read it.
func (l *lane[T]) keep(c *change[T]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == len(l.changes) || l.changes[l.kept] != c {
		return false
	}
	l.kept++
	return true
}

// forget drops the n oldest changes, which everybody has read or nobody will.
func (l *lane[T]) forget(n int, b *backlog[T]) {
	for _, c := range l.changes[:min(n, l.kept)] {
		b.giveBack(c)
	}
	l.kept = max(0, l.kept-n)
	clear(l.changes[:n])
	if l.changes = l.changes[n:]; len(l.changes) == 0 {
		l.changes = nil
	}
}

// lose drops the n oldest changes: whoever has not read them gets a 410.
func (l *lane[T]) lose(n int, b *backlog[T]) {
	if n > 0 {
		l.gone = l.changes[n-1].number + 1
		l.forget(n, b)
	}
}

// loseAll makes every watcher that is not beyond number get a 410.
func (l *lane[T]) loseAll(number uint64, b *backlog[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(len(l.changes), b)
	l.gone = number
}

// read copies the next changes from position on; ok is false if one of them is lost. What a
// watcher without company has read is forgotten.
func (l *lane[T]) read(position uint64, into []*change[T], b *backlog[T]) (n int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if position < l.gone {
		return 0, false
	}
	next := l.search(position)
	if l.members == 1 && next > 0 {
		l.forget(next, b)
		next = 0
	}
	return copy(into, l.changes[next:]), true
}

// search is the index of the first change that is not before position.
func (l *lane[T]) search(position uint64) int {
	if len(l.changes) > 0 && l.changes[0].number >= position {
		return 0
	}
	return sort.Search(len(l.changes), func(i int) bool { return l.changes[i].number >= position })
}

// park puts w on the list of those to wake, unless there is something for it to look at. What
// everybody has read is forgotten.
func (l *lane[T]) park(ctx context.Context, w *Watcher[T]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.position < l.last || w.position < l.gone || w.called(ctx) {
		return false
	}
	w.isParked = true
	if l.waiting++; l.waiting == l.members {
		l.forget(len(l.changes), &w.cache.window.backlog)
	}
	w.nextParked, w.previousParked = l.parked, nil
	if l.parked != nil {
		l.parked.previousParked = w
	}
	l.parked = w
	return true
}

// unpark wakes w, if it waits and nobody else is about to wake it.
func (l *lane[T]) unpark(w *Watcher[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !w.isParked {
		return
	}
	w.isParked = false
	l.waiting--
	if w.nextParked != nil {
		w.nextParked.previousParked = w.previousParked
	}
	if w.previousParked != nil {
		w.previousParked.nextParked = w.nextParked
	} else {
		l.parked = w.nextParked
	}
	w.nextParked, w.previousParked = nil, nil
	w.woken <- struct{}{}
}

func (l *lane[T]) unparkAll() {
	l.mu.Lock()
	parked := l.takeParked()
	l.mu.Unlock()
	wakeAll(parked)
}

// wakeAll wakes a list of watchers that nobody else can wake. It does not block.
func wakeAll[T store.Object](w *Watcher[T]) {
	for w != nil {
		next := w.nextParked // from the send on, w is its own
		w.nextParked, w.previousParked = nil, nil
		w.woken <- struct{}{}
		w = next
	}
}

// join makes w a member.
func (l *lane[T]) join() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members++
}

// leave ends a membership, and reports whether it was the last.
func (l *lane[T]) leave(b *backlog[T]) (empty bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.members--; l.waiting == l.members {
		l.forget(len(l.changes), b)
	}
	return l.members == 0
}

// backlog bounds the weight of the changes that lanes keep beyond the window. Those kept longest
// are lost first. A change that two lanes keep counts twice.
type backlog[T store.Object] struct {
	most  int64
	used  atomic.Int64
	held  atomic.Int64 // how many are kept
	queue []backlogged[T]
}

type backlogged[T store.Object] struct {
	lane   *lane[T]
	number uint64
}

// add notes that a lane keeps a change. The cache's mu is held.
func (b *backlog[T]) add(l *lane[T], c *change[T]) {
	b.used.Add(c.weight)
	b.held.Add(1)
	b.queue = append(b.queue, backlogged[T]{l, c.number})
	if len(b.queue) > 64+2*int(b.held.Load()) {
		b.compact()
	}
}

func (b *backlog[T]) giveBack(c *change[T]) {
	b.used.Add(-c.weight)
	b.held.Add(-1)
}

// compact forgets entries whose change has been read since.
func (b *backlog[T]) compact() {
	live := make([]backlogged[T], 0, b.held.Load()+64)
	for _, e := range b.queue {
		if e.lane.keeps(e.number) {
			live = append(live, e)
		}
	}
	b.queue = live
}

// trim has lanes lose what is over the bound. The cache's mu is held.
func (b *backlog[T]) trim() {
	for b.used.Load() > b.most && len(b.queue) > 0 {
		e := b.queue[0]
		b.queue[0] = backlogged[T]{}
		b.queue = b.queue[1:]
		e.lane.loseKept(e.number, b)
	}
}

// keeps reports whether a change is among those that the window has dropped.
func (l *lane[T]) keeps(number uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept > 0 && l.changes[0].number <= number && number <= l.changes[l.kept-1].number
}

// loseKept drops what is kept, up to a number.
func (l *lane[T]) loseKept(number uint64, b *backlog[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose(min(l.kept, l.search(number+1)), b)
}
