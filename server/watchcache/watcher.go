package watchcache

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

const (
	// batchSize and batchBytes bound what one watcher takes out of the window at a time, and so
	// what a slow one keeps alive.
	batchSize  = 128
	batchBytes = 1 << 20
	// lastBookmark is how long before the timeout a bookmark is sent, as by the API server.
	lastBookmark = 2 * time.Second
)

// Watcher is a position in the changes of a [Cache], and what is kept of them: the pull side of a
// watch, in batches. [Cache.Watcher] makes one. It is not safe for concurrent use. Close it in the
// end; one that was never asked needs no end.
//
// Most watchers are in no processor's cache when an event comes. So what each event needs is
// together, and what few of them need is at the end.
type Watcher[T store.Object] struct {
	// How it waits. It reads its lane. If it asks for everything, it reads the window, and joins
	// its lane at the end. Whoever takes it off the list of the parked calls ready, once.
	parkedBefore               uint64 // see isParked; guarded by the lane's mu, as the next two are
	nextParked, previousParked *Watcher[T]
	ready                      func()
	woken                      chan struct{} // of Next, as the next one; nil until it has waited
	notify                     func()        // sends to woken
	lane                       atomic.Pointer[lane[T]]

	// Where it is. Before it is placed, it waits for the state to reach minimum
	// (SendInitialEvents).
	position  uint64      // of the next change, in the numbers of the window
	alarm     atomic.Bool // the time of a bookmark or of the deadline has come
	placed    bool
	skips     bool // changes up to after may still come, and are not for this watcher
	counted   bool // as open: from the first call for events until Close
	bookmarks bool

	cache   *Cache[T]
	keep    *selection[T]
	timer   *time.Timer    // nil until it has waited
	unwatch func() bool    // ends what makes the end of watched wake the watcher
	events  []Delivery[T]  // what was last read
	buffer  *[]Delivery[T] // room for it, borrowed until the next wait

	took    time.Duration // when events were taken, if that is measured; else zero
	asked   uint64        // how often bookmarks had been asked for when the last one was sent
	reached uint64        // the version of the last change read, for messages
	after   uint64        // the version it started after
	gap     *gap          // the last one whose changes it is told

	initial *initial[T] // what is still to be sent of the state it starts with; nil if nothing

	mark      time.Time // when the next bookmark is due
	deadline  time.Time // zero: none
	minimum   uint64
	proven    bool // the state must be proven fresh before it is placed
	sendState bool
}

// initial is the rest of the state that a watcher starts with.
type initial[T store.Object] struct {
	objects []T
	whole   *listing[T] // of which they are the last; nil if they are not
	endMark bool        // a bookmark comes after them
}

// Watcher makes a watcher for a request. Its position is fixed by the call, unless it must wait for
// its state. Errors are those of [Cache.Watch].
func (c *Cache[T]) Watcher(r Request) (*Watcher[T], error) {
	r.Watch = true
	version, err := r.version()
	if err != nil {
		return nil, err
	}
	keep, err := c.bind(r)
	if err != nil {
		return nil, err
	}
	present, err := c.latest()
	if err != nil {
		return nil, err
	}
	keep.narrow(present.present)
	w := &Watcher[T]{
		cache: c, keep: keep, bookmarks: r.AllowWatchBookmarks, sendState: r.wantsState(version),
		asked: c.asked.Load(),
	}
	now := time.Now()
	if r.TimeoutSeconds != nil && *r.TimeoutSeconds > 0 {
		w.deadline = now.Add(time.Duration(*r.TimeoutSeconds) * time.Second)
	}
	w.scheduleBookmark(now)
	switch {
	case w.sendState && present.version < version:
		w.minimum = version
	case w.sendState && r.ResourceVersion == "" && c.proof != nil:
		w.proven = true
	case w.sendState || version == 0:
		w.placeAt(present)
	default:
		err = w.placeAfter(version)
	}
	return w, err
}

// placeAt starts at a present state, with it as initial events where they are wanted.
func (w *Watcher[T]) placeAt(present view[T]) {
	if w.sendState {
		w.initial = &initial[T]{endMark: w.bookmarks}
		w.initial.objects, w.initial.whole = w.keep.sorted(present)
		w.cache.stats.initial.Add(uint64(len(w.initial.objects)))
	}
	w.position, w.after, w.placed, w.skips = present.next, present.version, true, present.early
}

// placeAfter starts after a version, which may be one of the future.
func (w *Watcher[T]) placeAfter(version uint64) error {
	w.cache.mu.RLock()
	defer w.cache.mu.RUnlock()
	position, ok := w.cache.window.after(version)
	if !ok {
		w.countCut(tooLate)
		return tooOld(version, w.cache.window.floor)
	}
	w.position, w.after, w.placed = position, version, true
	w.skips = version > w.cache.version
	return nil
}

// Next waits for the next events. None and no error mean that the watch is over. The slice is valid
// until the next call. Calls of one watcher share a context.
func (w *Watcher[T]) Next(ctx context.Context) ([]Delivery[T], error) {
	if w.woken == nil {
		woken := make(chan struct{}, 1) // a function of this alone: to call it touches no watcher
		w.woken, w.notify = woken, func() { woken <- struct{}{} }
	}
	for {
		events, waits, err := w.Poll(ctx, w.notify)
		if !waits {
			return events, err
		}
		<-w.woken // also when ctx ends
	}
}

// startingState is the state to begin with, once the cache has it.
func (w *Watcher[T]) startingState(ctx context.Context) (view[T], error) {
	if w.proven {
		return w.cache.fresh(ctx)
	}
	return w.cache.notOlderThan(ctx, w.minimum)
}

// Close ends the watcher's part in the cache, and frees what it holds there. It does not block. It
// may be called while the watcher waits by Poll; a write that is under way may still call its
// function. A watcher that is asked for more afterwards goes on where it was, while the window
// reaches back to there, and must be closed again.
func (w *Watcher[T]) Close() {
	if w.unwatch != nil {
		w.unwatch()
		w.unwatch = nil
	}
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	w.cache.leave(w)
	if w.counted {
		w.counted = false
		w.cache.stats.watchers.Add(-1)
	}
}

func (w *Watcher[T]) over(now time.Time) bool { return !w.deadline.IsZero() && !now.Before(w.deadline) }

// called reports whether there is a reason to look that is not a change.
func (w *Watcher[T]) called(ctx context.Context) bool {
	return w.alarm.Load() || w.asked != w.cache.asked.Load() || ctx.Err() != nil
}

// timed reports whether there are things to do at a time.
func (w *Watcher[T]) timed() bool { return w.bookmarks || !w.deadline.IsZero() }

// answerCall sends a bookmark, if that is what is due, and sets the next alarm.
func (w *Watcher[T]) answerCall(complete uint64) (events []Delivery[T]) {
	now := time.Now()
	w.alarm.Store(false)
	if w.bookmarkDue(now) {
		w.scheduleBookmark(now)
		// There is nothing to say before a version of the future has come. A version known by
		// comparison has come: the events that the copy still waits for are not for this watcher.
		if complete >= w.after || w.cache.shows(w.after) {
			events = w.bookmark(max(complete, w.after), false)
		}
	}
	w.setAlarm(now)
	return events
}

// setAlarm has the next bookmark, or the deadline, wake the watcher.
func (w *Watcher[T]) setAlarm(now time.Time) {
	until := w.deadline
	if w.bookmarks && (until.IsZero() || w.mark.Before(until)) {
		until = w.mark
	}
	switch {
	case until.IsZero():
	case w.timer == nil:
		w.timer = time.AfterFunc(until.Sub(now), func() {
			w.alarm.Store(true)
			w.unpark()
		})
	default:
		w.timer.Reset(until.Sub(now))
	}
}

// unpark makes the watcher look, for a reason that is not a change. Set the reason first. It is
// safe at any time.
func (w *Watcher[T]) unpark() {
	if l := w.lane.Load(); l != nil {
		l.unpark(w)
	}
}

// initialEvents are the next initial events, or the bookmark after the last of them.
func (w *Watcher[T]) initialEvents() []Delivery[T] {
	rest := w.initial
	switch {
	case rest == nil:
		return nil
	case len(rest.objects) == 0:
		w.initial = nil
		if rest.endMark {
			return w.bookmark(w.after, true)
		}
		return nil
	}
	n := min(len(rest.objects), batchSize)
	w.makeRoom(n)
	for i, obj := range rest.objects[:n] {
		d := Delivery[T]{Event: listwatch.Event[T]{
			Type: watch.Added, Object: obj, ResourceVersion: obj.GetResourceVersion(),
		}}
		if rest.whole != nil {
			d.in, d.at = rest.whole, len(rest.whole.objects)-len(rest.objects)+i
		}
		w.events = append(w.events, d)
	}
	if rest.objects = rest.objects[n:]; len(rest.objects) == 0 && !rest.endMark {
		w.initial = nil
	}
	return w.events
}

// read takes the next changes, and what is to be seen of them into events; more says that there
// were any.
func (w *Watcher[T]) read() (more bool, err error) {
	w.makeRoom(1)
	began, ok := w.position, false
	if w.skips && !w.cache.knows(w.after) {
		w.countCut(relisted)
		return false, tooOld(w.after, w.cache.floor())
	}
	if l := w.lane.Load(); l != nil && l.trigger != nil {
		ok = w.readLane(l)
	} else {
		ok = w.readWindow()
	}
	if !ok && len(w.events) == 0 {
		w.countCut(w.whyLost())
		return false, tooOld(max(w.after, w.reached), w.cache.floor())
	}
	return w.position != began, nil
}

// readWindow sees all changes, until there is no more room. It is false if one is lost. At the end
// of the window the watcher joins its lane.
func (w *Watcher[T]) readWindow() bool {
	for bytes := int64(0); ; {
		c, ok := w.cache.window.Read(w.position)
		switch {
		case !ok:
			return false
		case c == nil:
			if w.lane.Load() != nil || w.cache.join(w) {
				return true
			}
			continue
		}
		weight, ok := w.see(c, c.effect())
		if !ok {
			return false
		}
		w.position++
		if bytes += weight; w.full(bytes) {
			return true
		}
	}
}

// readLane sees the changes of a lane, until there is no more room. It is false if one is lost.
func (w *Watcher[T]) readLane(l *lane[T]) bool {
	var few [8]seen[T]
	for bytes := int64(0); ; {
		n, ok := l.read(w.position, few[:], &w.cache.window.backlog)
		for _, c := range few[:n] {
			weight, ok := w.see(c.change, c.as)
			if !ok {
				return false
			}
			w.position = c.number + 1
			if bytes += weight; w.full(bytes) {
				return true
			}
		}
		if !ok || n < len(few) {
			return ok
		}
	}
}

func (w *Watcher[T]) full(bytes int64) bool { return len(w.events) >= batchSize || bytes >= batchBytes }

// see adds a change with an effect to events, and returns its weight. ok is false if the change
// cannot be told.
func (w *Watcher[T]) see(c *change[T], as effect) (weight int64, ok bool) {
	if w.skips {
		if c.gap != nil && c.gap.holds(w.after) {
			return 0, false
		}
		if c.version <= w.after {
			return 0, true
		}
		w.skips = false
	}
	if c.gap != nil && c.gap != w.gap && !w.enterGap(c) {
		return 0, false
	}
	w.reached = c.version
	if len(w.events) == cap(w.events) {
		w.makeMoreRoom()
	}
	w.events = append(w.events, Delivery[T]{})
	c.tell(&w.events[len(w.events)-1], as)
	return c.weight, true
}

// enterGap reports whether the watcher can be told what it sees of a gap, from its first change on.
func (w *Watcher[T]) enterGap(first *change[T]) (ok bool) {
	if l := w.lane.Load(); l != nil && l.trigger != nil {
		w.cache.awaitWriter() // which enters the rest of the gap
		ok = l.tellable(first)
	} else {
		ok = !first.gap.untold
	}
	if ok {
		w.gap = first.gap
	}
	return ok
}

// makeRoom forgets the last events, and makes room for n.
func (w *Watcher[T]) makeRoom(n int) {
	clear(w.events)
	if w.buffer != nil && cap(*w.buffer) < n {
		w.giveBack()
	}
	if w.buffer == nil {
		w.buffer = w.cache.buffers.borrow(n)
	}
	w.events = (*w.buffer)[:0]
}

// makeMoreRoom makes room for a whole batch, behind the events that are there.
func (w *Watcher[T]) makeMoreRoom() {
	buffer := w.cache.buffers.borrow(batchSize)
	events := append((*buffer)[:0], w.events...)
	w.giveBack()
	w.buffer, w.events = buffer, events
}

// giveBack forgets the last events, and returns the room for them.
func (w *Watcher[T]) giveBack() {
	if w.buffer != nil {
		clear(w.events)
		w.cache.buffers.giveBack(w.buffer)
		w.buffer, w.events = nil, nil
	}
}

func (w *Watcher[T]) bookmark(version uint64, initialEventsEnd bool) []Delivery[T] {
	w.makeRoom(1)
	w.events = append(w.events, Delivery[T]{Event: listwatch.Event[T]{
		Type: watch.Bookmark, ResourceVersion: formatVersion(version), InitialEventsEnd: initialEventsEnd,
	}})
	return w.events
}

// bookmarkDue reports whether the time of a bookmark has come, or somebody asks for one.
func (w *Watcher[T]) bookmarkDue(now time.Time) bool {
	asked := w.cache.asked.Load()
	wanted := asked != w.asked
	w.asked = asked
	return w.bookmarks && (wanted || !now.Before(w.mark))
}

// scheduleBookmark sets when the next bookmark is due: after the interval, or shortly before the
// deadline.
func (w *Watcher[T]) scheduleBookmark(now time.Time) {
	w.mark = now.Add(w.cache.config.bookmarkInterval)
	last := w.deadline.Add(-lastBookmark)
	if !w.deadline.IsZero() && now.Before(last) && last.Before(w.mark) {
		w.mark = last
	}
}
