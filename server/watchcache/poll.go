package watchcache

import (
	"context"
	"time"
)

const (
	// batchSize and batchBytes bound the changes that one watcher takes out of the window at a
	// time. A slow watcher keeps no more of them alive.
	batchSize  = 128
	batchBytes = 1 << 20
)

// Next waits for the next events. None and no error mean that the watch is over. The slice is valid
// until the next call. After an error, each further call returns it again. Calls of one watcher
// share a context.
func (w *Watcher[T]) Next(ctx context.Context) ([]Delivery[T], error) {
	if w.woken == nil {
		woken := make(chan struct{}, 1) // a function of this alone: to call it touches no watcher
		w.woken, w.notify = woken, func() { woken <- struct{}{} }
	}
	for {
		events, waits, err := w.poll(ctx, w.notify)
		if !waits {
			return events, err
		}
		<-w.woken // also when ctx ends
	}
}

// poll returns the next events if there are some. Otherwise waits is true, and ready is called
// once, maybe under the cache's locks and before poll returns: when there may be something, or when
// ctx ends. Only the state that a watcher begins with is waited for.
func (w *Watcher[T]) poll(ctx context.Context, ready func()) (events []Delivery[T], waits bool, err error) {
	for {
		if events, waits, err = w.look(ctx); !waits {
			return events, false, err
		}
		w.batch.giveBack(&w.cache.buffers)
		if w.parking.ready = ready; w.lane.Load().park(ctx, w) {
			return nil, true, nil
		}
	}
}

// Last returns the events that are there, or else a bookmark if the watcher wants bookmarks. It is
// for a watch that ends before its time, once Next has returned none. It does not wait. The
// slice is valid until Close.
func (w *Watcher[T]) Last() []Delivery[T] {
	if w.phase != live {
		return nil
	}
	w.asked-- // as if SendBookmarks had been called
	events, _, _ := w.look(context.Background())
	return events
}

// unpark makes the watcher look, for a reason that is not a change. Set the reason first. It is
// safe at any time.
func (w *Watcher[T]) unpark() {
	if l := w.lane.Load(); l != nil {
		l.unpark(w)
	}
}

// called reports whether there is a reason to look that is not a change.
func (w *Watcher[T]) called(ctx context.Context) bool {
	return w.alarm.Load() || w.asked != w.cache.asked.Load() || ctx.Err() != nil
}

// look takes the steps of the watcher's phases, until one has events or an end. waits means that
// nothing is there, and that the watch goes on.
func (w *Watcher[T]) look(ctx context.Context) (events []Delivery[T], waits bool, err error) {
	if !w.open {
		w.enter(ctx)
	}
	w.askAgain()
	clear(w.batch.events)
	w.batch.events = w.batch.events[:0]
	for ctx.Err() == nil {
		if err := w.cache.closed(); err != nil {
			w.phase, w.end = over, err
		}
		if w.phase != unplaced && !w.all && w.lane.Load() == nil {
			w.cache.join(w) // before it is told anything
		}
		switch w.phase {
		case unplaced:
			err = w.place(ctx)
		case starting:
			events = w.tellState()
		case live:
			events, waits, err = w.follow(ctx)
		case over:
			return nil, false, w.end
		}
		if err != nil {
			w.phase, w.end = over, err
		}
		if waits || len(events) > 0 {
			return events, waits, nil
		}
	}
	return nil, false, nil
}

// follow is the step of a live watcher.
func (w *Watcher[T]) follow(ctx context.Context) (events []Delivery[T], waits bool, err error) {
	called, complete := w.called(ctx), uint64(0)
	if called {
		if w.times.overdue(time.Now()) {
			w.phase = over
			return nil, false, nil
		}
		complete = w.cache.current() // before reading: the events are complete up to it then
	}
	began := w.position
	if err := w.read(); err != nil {
		return nil, false, err
	}
	switch {
	case len(w.batch.events) > 0:
		w.take()
	case w.position != began: // past changes that are not for this watcher
	case called:
		w.answerCall(complete)
		waits = len(w.batch.events) == 0
	default:
		waits = true
	}
	return w.batch.events, waits, nil
}

// read takes the next changes into events, until there is no more room.
func (w *Watcher[T]) read() error {
	arrived := false // the changes that are to be skipped are all there
	if w.skips {
		var skipped bool
		if arrived, skipped = w.cache.arrivedAt(w.after); skipped {
			w.countCut(relisted)
			return tooOld(w.after, w.cache.floor())
		}
	}
	var few [8]seen[T]
	for bytes := int64(0); ; {
		n, ok := w.fetch(few[:])
		for _, c := range few[:n] {
			if !w.see(c) {
				return w.lost()
			}
			w.position = c.number + 1
			if bytes += c.weight; len(w.batch.events) >= batchSize || bytes >= batchBytes {
				return nil
			}
		}
		switch {
		case !ok:
			return w.lost()
		case n < len(few) && (w.lane.Load() != nil || w.cache.join(w)):
			w.skips = w.skips && !arrived
			return nil
		}
	}
}

// fetch copies the next changes; ok is false if the first of them is lost.
func (w *Watcher[T]) fetch(into []seen[T]) (n int, ok bool) {
	switch l := w.lane.Load(); {
	case w.all:
		return w.cache.window.read(w.position, into)
	case l != nil:
		return l.read(w.position, into)
	}
	return 0, false // it came too late to join
}

// see adds a change to events, if it is for this watcher. It is false if the change cannot be told.
func (w *Watcher[T]) see(c seen[T]) (ok bool) {
	if w.skips {
		if c.gap != nil && c.gap.holds(w.after) {
			return false
		}
		if c.version <= w.after {
			return true
		}
		w.skips = false
	}
	if c.gap != nil && c.gap != w.gap && !w.enterGap(c.change) {
		return false
	}
	w.after = c.version
	c.tell(w.batch.next(&w.cache.buffers), c.as)
	return true
}

// enterGap reports whether the watcher can be told of a gap, from its first change on.
func (w *Watcher[T]) enterGap(first *change[T]) (ok bool) {
	if w.all {
		ok = !first.gap.untold
	} else {
		w.cache.awaitWriter() // which enters the rest of the gap
		ok = w.lane.Load().tellable(first)
	}
	if ok {
		w.gap = first.gap
	}
	return ok
}

// lost ends a watcher that cannot be told its next change, once it has been told those before.
func (w *Watcher[T]) lost() error {
	if len(w.batch.events) > 0 {
		return nil
	}
	w.countCut(w.whyLost())
	return tooOld(w.after, w.cache.floor())
}
