package watchcache

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

const (
	// batchSize bounds what one watcher takes out of the window at a time, and so what a slow one
	// keeps alive.
	batchSize = 128
	// lastBookmark is how long before the timeout a bookmark is sent, as by the API server.
	lastBookmark = 2 * time.Second
)

// Watcher is a position in the changes of a [Cache], and what is kept of them: the pull side of a
// watch, in batches. [Cache.Watcher] makes one. It is not safe for concurrent use, and needs no
// end: one that is not asked any more costs its memory alone.
type Watcher[T store.Object] struct {
	cache *Cache[T]
	keep  *selection[T]

	// Where it is. Before it is placed, it waits for the state to reach minimum
	// (SendInitialEvents).
	placed   bool
	minimum  uint64
	position uint64 // of the next change in the window
	after    uint64 // the version it started after
	skips    bool   // changes up to after may still come, and are not for this watcher
	reached  uint64 // the version of the last change read, for messages

	// What is still to be sent of the state it starts with.
	sendState bool
	initial   []T
	endMark   bool // the bookmark after the initial state

	bookmarks bool
	mark      time.Time // when the next bookmark is due
	asked     uint64    // how often bookmarks had been asked for when the last one was sent
	deadline  time.Time // zero: none

	batch   []*change[T]  // the changes last read
	events  []Delivery[T] // what was to be seen of them
	pending []Delivery[T] // for Watch: what it has not yet yielded
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
	w := &Watcher[T]{
		cache: c, keep: keep, bookmarks: r.AllowWatchBookmarks, sendState: r.wantsState(version),
		batch: make([]*change[T], 0, batchSize), asked: c.asked.Load(),
	}
	now := time.Now()
	if r.TimeoutSeconds != nil && *r.TimeoutSeconds > 0 {
		w.deadline = now.Add(time.Duration(*r.TimeoutSeconds) * time.Second)
	}
	w.scheduleBookmark(now)
	w.endMark = w.sendState && r.SendInitialEvents != nil && r.AllowWatchBookmarks
	switch {
	case w.sendState && present.version < version:
		w.minimum = version
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
		w.initial = sorted(w.keep.in(present.state))
	}
	w.position, w.after, w.placed = present.next, present.version, true
}

// placeAfter starts after a version, which may be one of the future.
func (w *Watcher[T]) placeAfter(version uint64) error {
	w.cache.mu.RLock()
	defer w.cache.mu.RUnlock()
	position, ok := w.cache.window.after(version)
	if !ok {
		return tooOld(version, w.cache.window.floor)
	}
	w.position, w.after, w.placed = position, version, true
	w.skips = version > w.cache.version
	return nil
}

// Next waits for the next events. None and no error mean that the watch is over. The slice is valid
// until the next call.
func (w *Watcher[T]) Next(ctx context.Context) ([]Delivery[T], error) {
	if !w.placed {
		present, err := w.cache.notOlderThan(ctx, w.minimum)
		if ctx.Err() != nil {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		w.placeAt(present)
	}
	for ctx.Err() == nil && !w.over(time.Now()) {
		if events := w.initialEvents(); len(events) > 0 {
			return events, nil
		}
		changed := w.cache.changed.Wait()
		complete := w.cache.current() // before reading: what is read then is complete up to it
		if err := w.read(); err != nil {
			return nil, err
		}
		switch {
		case len(w.events) > 0:
			return w.events, nil
		case len(w.batch) > 0:
			continue // nothing of it was for us
		}
		now := time.Now()
		if w.bookmarkDue(now) {
			w.scheduleBookmark(now)
			// There is nothing to say before a version of the future has come.
			if complete >= w.after {
				return w.bookmark(complete, false), nil
			}
		}
		w.sleep(ctx, changed, now)
	}
	return nil, nil
}

func (w *Watcher[T]) over(now time.Time) bool { return !w.deadline.IsZero() && !now.Before(w.deadline) }

// initialEvents are the next initial events, or the bookmark after the last of them.
func (w *Watcher[T]) initialEvents() []Delivery[T] {
	if len(w.initial) == 0 {
		if w.endMark {
			w.endMark = false
			return w.bookmark(w.after, true)
		}
		return nil
	}
	n := min(len(w.initial), batchSize)
	w.events = w.events[:0]
	for _, obj := range w.initial[:n] {
		w.events = append(w.events, Delivery[T]{Event: listwatch.Event[T]{
			Type: watch.Added, Object: obj, ResourceVersion: obj.GetResourceVersion(),
		}})
	}
	w.initial = w.initial[n:]
	if len(w.initial) == 0 {
		w.initial = nil
	}
	return w.events
}

// read takes the next changes out of the window into batch, and what is to be seen of them into
// events.
func (w *Watcher[T]) read() error {
	clear(w.batch[:cap(w.batch)])
	clear(w.events)
	w.events = w.events[:0]
	w.cache.mu.RLock()
	batch, ok := w.cache.window.Read(w.position, batchSize, w.batch[:0])
	floor := w.cache.window.floor
	w.cache.mu.RUnlock()
	w.batch = batch
	if !ok {
		return tooOld(max(w.after, w.reached), floor)
	}
	w.position += uint64(len(batch))
	for _, c := range batch {
		w.reached = c.version
		if w.skips && c.version <= w.after {
			continue
		}
		if e, ok := c.seenBy(w.keep); ok {
			w.events = append(w.events, e)
		}
	}
	return nil
}

func (w *Watcher[T]) bookmark(version uint64, initialEventsEnd bool) []Delivery[T] {
	w.events = append(w.events[:0], Delivery[T]{Event: listwatch.Event[T]{
		Type: watch.Bookmark, ResourceVersion: formatVersion(version), InitialEventsEnd: initialEventsEnd,
	}})
	return w.events
}

// bookmarkDue reports whether the time of a bookmark has come, or somebody asks for one.
func (w *Watcher[T]) bookmarkDue(now time.Time) bool {
	asked := w.cache.asked.Load()
	if !w.bookmarks || asked == w.asked && now.Before(w.mark) {
		return false
	}
	w.asked = asked
	return true
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

// sleep waits for a change, a bookmark to send, the deadline or the end of ctx.
func (w *Watcher[T]) sleep(ctx context.Context, changed <-chan struct{}, now time.Time) {
	var until time.Time
	if w.bookmarks {
		until = w.mark
	}
	if !w.deadline.IsZero() && (until.IsZero() || w.deadline.Before(until)) {
		until = w.deadline
	}
	var expired <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(until.Sub(now))
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-changed:
	case <-expired:
	case <-ctx.Done():
	}
}
