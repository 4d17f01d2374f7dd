package watchcache

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Watcher reads a [Cache]'s changes from one position, in batches. [Cache.Watcher] makes one. It is
// not safe for concurrent use. Close it in the end; a watcher that was never asked for events needs
// no end.
//
// Fields are ordered by use: an event usually finds the watcher in cold memory, so that the fields
// of every event share two cache lines, and those of [Watcher.Next] are in the third.
type Watcher[T store.Object] struct {
	parking  parking[T]
	lane     atomic.Pointer[lane[T]] // nil until it has joined
	cache    *Cache[T]
	position uint64      // of the next change, in the numbers of the window
	alarm    atomic.Bool // the time of a bookmark or of the deadline has come
	phase    phase
	all      bool // it asks for everything: it reads the window, and joins its lane at the end
	skips    bool // changes up to after may still come, and are not for this watcher
	open     bool // from the first call for events until Close

	batch batch[T]
	took  time.Duration // when events were taken, if that is measured; else zero
	asked uint64        // how often bookmarks had been asked for when the last one was sent
	after uint64        // the version that it starts after; later that of its last change

	woken  chan struct{} // of Next; nil until then
	notify func()        // sends to woken

	keep    *selection[T]
	start   *start[T]   // the state that it is told first; nil if none, or none any more
	gap     *gap        // the last one that it was told of
	end     error       // of a watch that is over; nil if its time was up
	unwatch func() bool // ends the wake-up by the context
	times   times
}

// phase is how far a watch has come. A watch that begins at a version is live at once.
type phase uint8

const (
	unplaced phase = iota // it has no position yet: the state that it starts with is still to come
	starting              // it is told that state
	live                  // it is told changes
	over                  // its deadline has passed, or it has had its error
)

// start is the state that a watcher is told first (SendInitialEvents).
type start[T store.Object] struct {
	minimum uint64 // the version that the state must have reached
	proven  bool   // it must be proven fresh
	objects []T    // still to be told
	whole   *listing[T]
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
		cache: c, keep: keep, all: keep.everything(), asked: c.asked.Load(),
		times: times{bookmarks: r.AllowWatchBookmarks},
	}
	now := time.Now()
	if seconds := r.TimeoutSeconds; seconds != nil && *seconds > 0 {
		w.times.deadline = now.Add(time.Duration(*seconds) * time.Second)
	}
	w.times.schedule(now, c.config.bookmarkInterval)
	w.clearAlarm()
	switch {
	case r.wantsState(version):
		w.start = &start[T]{minimum: version, proven: r.ResourceVersion == "" && c.proof != nil}
		if present.version >= version && !w.start.proven {
			w.placeAt(present)
		}
	case version == 0:
		w.placeAt(present)
	default:
		err = w.placeAfter(version)
		if c.config.bookmarkFirst {
			w.asked-- // as if SendBookmarks had been called since
		}
	}
	return w, err
}

// placeAt starts at a present state.
func (w *Watcher[T]) placeAt(present view[T]) {
	w.position, w.after, w.skips, w.phase = present.next, present.version, present.early, live
	if s := w.start; s != nil {
		w.phase = starting
		s.objects, s.whole = w.keep.sorted(present)
		w.cache.stats.initial.Add(uint64(len(s.objects)))
	}
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
	w.position, w.after, w.skips, w.phase = position, version, version > w.cache.version, live
	return nil
}

// Close ends the watcher's part in the cache, and frees its memory there. It does not block. A
// watcher that is asked for more afterwards goes on at its position, while the window reaches back
// to there, and must be closed again.
func (w *Watcher[T]) Close() {
	if !w.open {
		return
	}
	w.open = false
	if w.unwatch != nil {
		w.unwatch()
		w.unwatch = nil
	}
	w.clearAlarm()
	w.cache.leave(w)
	w.cache.stats.watchers.Add(-1)
}

// enter begins the watcher's part in the cache.
func (w *Watcher[T]) enter(ctx context.Context) {
	w.open = true
	w.cache.stats.watchers.Add(1)
	if ctx.Done() != nil {
		w.unwatch = context.AfterFunc(ctx, w.unpark)
	}
}

// place is the step of a watcher without a position. It does nothing if ctx ends first.
func (w *Watcher[T]) place(ctx context.Context) error {
	var present view[T]
	var err error
	if w.start.proven {
		present, err = w.cache.fresh(ctx)
	} else {
		present, err = w.cache.notOlderThan(ctx, w.start.minimum)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil:
		w.placeAt(present)
	}
	return err
}

// tellState is the step of a watcher that is told a state: the next objects, or the bookmark after
// the last of them.
func (w *Watcher[T]) tellState() []Delivery[T] {
	s := w.start
	if len(s.objects) == 0 {
		w.phase, w.start = live, nil
		if w.times.bookmarks {
			w.addBookmark(w.after, true)
		}
		return w.batch.events
	}
	for range min(len(s.objects), batchSize) {
		d := w.batch.next(&w.cache.buffers)
		d.Event = listwatch.Event[T]{
			Type: watch.Added, Object: s.objects[0], ResourceVersion: s.objects[0].GetResourceVersion(),
		}
		if s.whole != nil {
			d.in, d.at = s.whole, len(s.whole.objects)-len(s.objects)
		}
		s.objects = s.objects[1:]
	}
	return w.batch.events
}
