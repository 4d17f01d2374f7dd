package watchcache

import (
	"context"

	"github.com/tributary-go/tributary/store"
)

// lane is where the watchers of one selection wait, such as those of one node, with the history
// that they read. A change that the selection does not see neither wakes nor delays them.
//
// The lane of everything has no history: its watchers read the window.
//
// Fields are ordered by use, as those of a [Watcher]: 192 bytes begin at a cache line, and an event
// needs two of three lines.
type lane[T store.Object] struct {
	parked parkedList[T] // guarded by the history's mu, as is taken
	taken  uint64        // how often all of the parked have been taken
	history[T]

	trigger *trigger[T]   // nil for everything
	keep    *selection[T] // nil if it asks for the value alone
	value   string        // of the trigger
}

// add takes a change in, and returns the watchers to wake. The cache's mu is held.
func (l *lane[T]) add(c seen[T]) (list parkedList[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.as != unseen {
		l.append(c)
	}
	l.last = c.number + 1
	return l.takeParked()
}

// takeParked empties the list of parked watchers, and returns it to be woken.
func (l *lane[T]) takeParked() (list parkedList[T]) {
	list = l.parked
	l.parked = parkedList[T]{}
	l.taken++
	return list
}

// park puts w on the list of those to wake, unless there is something for it to look at. The
// changes that all members have read are forgotten.
func (l *lane[T]) park(ctx context.Context, w *Watcher[T]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.position < l.last || w.position < l.gone || w.called(ctx) {
		return false
	}
	w.parking.before = l.taken + 1
	w.parking.next, w.parking.previous = l.parked.first, nil
	if l.parked = (parkedList[T]{first: w, n: l.parked.n + 1}); l.parked.n == 1 {
		l.parked.alone = w.parking.ready
	} else {
		w.parking.next.parking.previous = w
	}
	if l.parked.n == l.readers {
		l.forget(len(l.changes))
	}
	return true
}

// isParked reports whether w is on the list of those to wake.
func (l *lane[T]) isParked(w *Watcher[T]) bool { return w.parking.before > l.taken }

// unpark wakes w, if it waits and nothing else is about to wake it.
func (l *lane[T]) unpark(w *Watcher[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isParked(w) {
		return
	}
	l.unlink(w)
	w.parking.ready()
}

// unlink takes a parked watcher off the list of those to wake.
func (l *lane[T]) unlink(w *Watcher[T]) {
	w.parking.before = 0
	if w.parking.next != nil {
		w.parking.next.parking.previous = w.parking.previous
	}
	if w.parking.previous != nil {
		w.parking.previous.parking.next = w.parking.next
	} else {
		l.parked.first = w.parking.next
	}
	l.parked.n--
	if l.parked.alone = nil; l.parked.n == 1 {
		l.parked.alone = l.parked.first.parking.ready
	}
	w.parking.next, w.parking.previous = nil, nil
}

func (l *lane[T]) unparkAll() {
	l.mu.Lock()
	list := l.takeParked()
	l.mu.Unlock()
	list.wake()
}

// parking is a watcher's place on the list of the parked. The lane's mu guards it.
type parking[T store.Object] struct {
	before         uint64 // see isParked
	next, previous *Watcher[T]
	ready          func() // called once, by the goroutine that takes the watcher off the list
}

// parkedList are the watchers that wait in a lane. The function that wakes a single one is at hand,
// so that a write does not touch the watcher.
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
		next := w.parking.next // from the call on, w is its own
		w.parking.next, w.parking.previous = nil, nil
		w.parking.ready()
		w = next
	}
}

// join makes a watcher a member that has still to read own: all changes from its position on that
// its selection sees. The window may have dropped some by now. The cache's mu is held.
func (l *lane[T]) join(own []seen[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers++; len(own) > 0 {
		l.splice(own)
	}
}

// leave ends the membership of w, which may be parked, and reports whether it was the last. The
// changes that all others have read are forgotten.
func (l *lane[T]) leave(w *Watcher[T]) (empty bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isParked(w) {
		l.unlink(w)
	}
	w.parking.before = 0 // in another lane it means something else
	if l.readers--; l.parked.n == l.readers {
		l.forget(len(l.changes))
	}
	return l.readers == 0
}
