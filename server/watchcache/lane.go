package watchcache

import (
	"context"
	"slices"
	"sort"
	"sync"

	"github.com/tributary-go/tributary/store"
)

// lane is where the watchers of one selection wait, such as those of one node: a change that the
// selection does not see neither wakes nor delays them. It lists the changes that a watcher has
// still to read, and keeps them when the window drops them.
//
// The lane of everything lists none: its watchers read the window.
type lane[T store.Object] struct {
	trigger *trigger[T]   // nil for everything
	keep    *selection[T] // nil if it asks for the value alone

	mu      sync.Mutex // guards what follows, but for the last three; taken after the cache's
	members int        // watchers that read here
	parked  parkedList[T]
	taken   uint64     // how often all of them have been taken
	gone    uint64     // one more than the number of the last change that was dropped unread
	last    uint64     // one more than the number of the last change that came
	noted   *change[T] // see note; nil if nothing is to read that the window holds
	changes []seen[T]  // what some member has not read, oldest first
	few     [1]seen[T]
	kept    int   // how many of them the window has dropped
	room    int   // for how many the list has been charged
	weight  int64 // of those that are kept, and of the list
	lostBy  cause // why it has lost changes, the last time

	value  string // of the trigger
	queued bool   // in the queue of the backlog; guarded by the cache's mu

	lastNoted uint64 // the change whose list may still have the lane; guarded by the cache's mu
}

// seen is a change with its effect on the selection of a lane.
type seen[T store.Object] struct {
	*change[T]
	as effect
}

// add takes a change in, and returns the watchers to wake. The cache's mu is held.
func (l *lane[T]) add(c seen[T], w *window[T]) (list parkedList[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trigger != nil {
		if l.noted == nil {
			l.note(c.change)
		}
		if len(l.changes) == 0 {
			l.changes = l.few[:0]
		}
		if l.changes = append(l.changes, c); cap(l.changes) > l.room && len(l.changes) > 1 {
			l.charge(&w.backlog)
		}
		l.lose(len(l.changes)-w.limits.events, overCount, &w.backlog)
	}
	l.last = c.number + 1
	return l.takeParked()
}

// note has the lane told when the window drops a change: the oldest that a member has still to read
// and that the window holds. So each lane is noted with one change at a time, and not with all that
// it lists. The cache's mu is held.
func (l *lane[T]) note(c *change[T]) {
	l.unnote()
	c.lanes = append(c.lanes, l)
	c.awaited.Add(1)
	l.noted, l.lastNoted = c, c.number
}

func (l *lane[T]) unnote() {
	if l.noted != nil {
		l.noted.awaited.Add(-1)
		l.noted = nil
	}
}

// isNoted reports whether the lane is to be told when the window drops a change.
func (l *lane[T]) isNoted(c *change[T]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noted == c
}

// takeParked empties the list of parked watchers, which is for the caller to wake.
func (l *lane[T]) takeParked() (list parkedList[T]) {
	list = l.parked
	l.parked = parkedList[T]{}
	l.taken++
	return list
}

// dropped is told that the window drops a change. The lane keeps it if a member may not have read
// it. The cache's mu is held.
func (l *lane[T]) dropped(c *change[T], b *backlog[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.noted != c {
		return
	}
	if l.kept < len(l.changes) && l.changes[l.kept].change == c {
		l.keepOne(b)
	}
	if l.unnote(); l.kept < len(l.changes) {
		l.note(l.changes[l.kept].change)
	}
}

// keepOne keeps one more change, which the window has dropped.
func (l *lane[T]) keepOne(b *backlog[T]) {
	c := l.changes[l.kept].change
	l.kept++
	l.weight += c.weight
	b.add(l, c)
}

// forget drops the n oldest changes, which everybody has read or nobody will.
func (l *lane[T]) forget(n int, b *backlog[T]) {
	for _, c := range l.changes[:min(n, l.kept)] {
		l.weight -= c.weight
		b.giveBack(c.change)
	}
	l.kept = max(0, l.kept-n)
	clear(l.changes[:n])
	if l.changes = l.changes[n:]; len(l.changes) == 0 {
		l.changes = nil
		l.unnote()
		if l.room > 0 {
			l.charge(b)
		}
	}
}

// lose drops the n oldest changes: whoever has not read them gets a 410.
func (l *lane[T]) lose(n int, why cause, b *backlog[T]) {
	if n > 0 {
		l.lostBy = why
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
func (l *lane[T]) read(position uint64, into []seen[T], b *backlog[T]) (n int, ok bool) {
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

// tellable reports whether the lane's watchers can be told of a gap, all of which has been entered.
func (l *lane[T]) tellable(first *change[T]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first.number < l.gone {
		return false
	}
	rest := l.changes[l.search(first.number):]
	if end := slices.IndexFunc(rest, func(c seen[T]) bool { return c.gap != first.gap }); end >= 0 {
		rest = rest[:end]
	}
	return tellable(rest)
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
	w.parkedBefore = l.taken + 1
	w.nextParked, w.previousParked = l.parked.first, nil
	if l.parked = (parkedList[T]{first: w, n: l.parked.n + 1}); l.parked.n == 1 {
		l.parked.alone = w.ready
	} else {
		w.nextParked.previousParked = w
	}
	if l.parked.n == l.members {
		l.forget(len(l.changes), &w.cache.window.backlog)
	}
	return true
}

// isParked reports whether w is on the list of those to wake.
func (l *lane[T]) isParked(w *Watcher[T]) bool { return w.parkedBefore > l.taken }

// unpark wakes w, if it waits and nobody else is about to wake it.
func (l *lane[T]) unpark(w *Watcher[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isParked(w) {
		return
	}
	l.unlink(w)
	w.ready()
}

// unlink takes a parked watcher off the list of those to wake.
func (l *lane[T]) unlink(w *Watcher[T]) {
	w.parkedBefore = 0
	if w.nextParked != nil {
		w.nextParked.previousParked = w.previousParked
	}
	if w.previousParked != nil {
		w.previousParked.nextParked = w.nextParked
	} else {
		l.parked.first = w.nextParked
	}
	l.parked.n--
	if l.parked.alone = nil; l.parked.n == 1 {
		l.parked.alone = l.parked.first.ready
	}
	w.nextParked, w.previousParked = nil, nil
}

func (l *lane[T]) unparkAll() {
	l.mu.Lock()
	list := l.takeParked()
	l.mu.Unlock()
	list.wake()
}

// parkedList are the watchers that wait in a lane. What wakes the only one is at hand, so that a
// write does not touch the watcher.
type parkedList[T store.Object] struct {
	first *Watcher[T]
	n     int
	alone func() // ready of first, if there is no other; else nil
}

// wake wakes watchers that have been taken off their lane. It does not block.
func (p parkedList[T]) wake() {
	if p.alone != nil {
		p.alone()
		return
	}
	for w := p.first; w != nil; {
		next := w.nextParked // from the call on, w is its own
		w.nextParked, w.previousParked = nil, nil
		w.ready()
		w = next
	}
}

// join makes a watcher a member that has still to read own: all changes from its position on that
// its selection sees. The window may have dropped some by now. The cache's mu is held.
func (l *lane[T]) join(own []seen[T], w *window[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members++
	if len(own) == 0 {
		return
	}
	l.last = max(l.last, own[len(own)-1].number+1)
	// The other members have read what is not listed, so that own has all that is, from there on.
	before := l.search(own[0].number)
	for ; l.kept > before; l.kept-- {
		l.weight -= l.changes[l.kept-1].weight
		w.backlog.giveBack(l.changes[l.kept-1].change)
	}
	l.changes = append(l.changes[:before:before], own...)
	for l.kept < len(l.changes) && l.changes[l.kept].number < w.First() {
		l.keepOne(&w.backlog)
	}
	if l.kept < len(l.changes) && (l.noted == nil || l.noted.number > l.changes[l.kept].number) {
		l.note(l.changes[l.kept].change)
	}
	l.charge(&w.backlog)
	l.lose(len(l.changes)-w.limits.events, overCount, &w.backlog)
}

// leave ends the membership of w, which may be parked, and reports whether it was the last. What
// the others have all read is forgotten.
func (l *lane[T]) leave(w *Watcher[T], b *backlog[T]) (empty bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isParked(w) {
		l.unlink(w)
	}
	w.parkedBefore = 0 // in another lane it means something else
	if l.members--; l.parked.n == l.members {
		l.forget(len(l.changes), b)
	}
	return l.members == 0
}
