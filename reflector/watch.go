package reflector

import (
	"context"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// openWatch is a watch under way, with the guard that ends it when it falls silent.
type openWatch[T store.Object] struct {
	guard   *stream.Guard
	events  iter.Seq2[listwatch.Event[T], error]
	timeout time.Duration // the server was asked to end it then

	step     step      // that is under way
	began    time.Time // of the step doWatch
	load     *load[T]  // of the initial events of a watch list, until they have ended
	position position
	outcome  outcome // so far
}

func (r *Reflector[T]) openWatch(ctx context.Context, s step) *openWatch[T] {
	silence := r.untilFirst()
	if s.kind == doWatchList {
		silence = stream.UntilState(r.options.liveness)
	}
	w := &openWatch[T]{step: s}
	w.step.options, w.timeout = stream.Ending(s.options, r.options.watchTimeout, r.random())
	w.guard = stream.StartWatch(ctx, silence, w.timeout)
	r.watching.Store(w.guard)
	w.events = r.source.Watch(w.guard.Waiting(false, r.status.requestWaits), w.step.options)
	return w
}

func (r *Reflector[T]) closeWatch(w *openWatch[T]) {
	r.watching.Store(nil)
	w.guard.Stop()
}

// watch follows the changes. A watch list brings the state before them.
func (r *Reflector[T]) watch(ctx context.Context, s step) {
	w := r.openWatch(ctx, s)
	defer r.closeWatch(w)
	if s.kind == doWatchList {
		r.load(w)
	} else {
		r.follow(w, s)
	}
	for event, err := range w.events {
		goOn := false
		if w.load == nil {
			goOn = r.take(w, event, err)
		} else {
			goOn = w.initial(event, err) || r.loaded(ctx, w)
		}
		if !goOn {
			break
		}
	}
	switch {
	case w.load != nil: // the watch ended before the state did
		w.load.put(*new(T), stream.ErrIncomplete)
		w.load.stop()
		r.loaded(ctx, w)
	case w.step.kind == doWatch:
		r.followed(ctx, w)
	}
}

// load begins to read the initial events into the store.
func (r *Reflector[T]) load(w *openWatch[T]) {
	r.enter(Listing)
	read := r.readFor(w.step)
	w.load = newLoad(read, func(items iter.Seq2[T, error]) { r.replace(items, read, w.guard) })
}

// initial takes in an event of the state, which ends with a bookmark of its version. It reports
// whether another one is wanted.
func (w *openWatch[T]) initial(event listwatch.Event[T], err error) (wanted bool) {
	part := stream.Object
	if err == nil {
		part, err = stream.PartOf(event)
	}
	switch {
	case err != nil, part == stream.Object:
		return w.load.put(event.Object, stream.Cause(w.guard.Ctx, err))
	case part == stream.End:
		w.load.read.version = event.ResourceVersion
		w.load.stop()
		return false
	}
	return true
}

// loaded takes in the state, and reports whether its watch goes on.
func (r *Reflector[T]) loaded(ctx context.Context, w *openWatch[T]) bool {
	read := w.load.read
	w.load = nil
	if r.listEnded(ctx, read); !read.complete || ctx.Err() != nil {
		return false
	}
	s := r.next()
	if s.kind != doWatch { // a doubt has come: another list is due
		return false
	}
	w.guard.Allow(stream.UntilFirst(r.options.liveness))
	r.follow(w, s)
	return true
}

// follow begins to follow the changes.
func (r *Reflector[T]) follow(w *openWatch[T], s step) {
	r.enter(Watching)
	unproven := false
	r.status.change(func(st *Status) {
		st.Watches++
		unproven = st.ProvenAt.IsZero()
	})
	if r.doubts.Load() != nil { // it came before there was a watch to end
		w.guard.End(errDoubted)
	}
	if r.resumed && unproven { // the server may be another one, or a restored one
		r.prober.within(0)
	}
	version := s.options.ResourceVersion
	w.step, w.began = s, time.Now()
	w.position = position{at: version, before: version, unordered: r.unordered}
}

// followed takes in the end of a watch.
func (r *Reflector[T]) followed(ctx context.Context, w *openWatch[T]) {
	o := w.outcome
	o.version = w.position.at
	if o.err == nil {
		// a source may end cleanly when its context does
		o.err = stream.Cause(w.guard.Ctx, w.guard.Ctx.Err())
	}
	o.sent = w.guard.Lived()
	o.due = o.sent >= w.timeout-w.timeout/10
	r.closeWatch(w)
	r.ended(ctx, w.step, w.began, o)
}

// untilFirst is how long a watch may be silent from its start. After one that was silent the next
// gets no extra time, so that a dead connection does not get it again and again.
func (r *Reflector[T]) untilFirst() time.Duration {
	if r.machine.watches.silent > 0 {
		return r.options.liveness
	}
	return stream.UntilFirst(r.options.liveness)
}

// soon is when a probe follows an interruption: after 5 to 14 s by default, so that the probes of
// many clients spread, and the whole is over within the liveness period.
func (r *Reflector[T]) soon() time.Duration {
	return r.options.liveness/18 + time.Duration(r.random()*float64(r.options.liveness/10))
}

// take takes in one event, or the error in its place, and reports whether the watch goes on. Status
// is edited once, when the store has the event, so that contact, version and count are always of
// one event.
func (r *Reflector[T]) take(w *openWatch[T], event listwatch.Event[T], err error) (goOn bool) {
	now, isEvent, write := time.Now(), event.Type != watch.Bookmark, err == nil
	if err == nil {
		if w.outcome.contacts == 0 {
			r.recovered()
		}
		if w.outcome.contacts == 0 || !isEvent {
			w.guard.Allow(r.options.liveness) // the timer of a quiet watch never wakes
		}
		w.outcome.contacts++
		w.guard.Heard(now)
		if where := r.place(&w.position, event); where != placed {
			write, err = r.misplaced(where, event)
		}
	}
	if write {
		err = r.pass(event)
	}
	if err != nil && !r.lost(w, event, err, now) {
		return false
	}
	if !isEvent {
		r.bookmarked(w, event.ResourceVersion)
	}
	caughtUp := false
	r.status.change(func(s *Status) {
		s.LastContact = now
		if isEvent {
			s.LastEvent = now
		}
		if w.outcome.err != nil {
			return
		}
		r.status.reachedLocked(w.position.at, now)
		caughtUp = s.Class == CatchingUp && r.status.caughtUpLocked()
		if isEvent && write && err == nil {
			if s.Events++; len(r.status.losses.keys) > 0 { // else no key is made
				r.status.mendedLocked(event.Object)
			}
		}
	})
	if caughtUp {
		r.recovered()
	}
	return w.outcome.err == nil
}

// lost takes in an error in place of an event. It reports whether the error is about that event
// alone; the watch ends all the same when a relist may heal the loss now.
func (r *Reflector[T]) lost(w *openWatch[T], event listwatch.Event[T], err error, now time.Time) (alone bool) {
	err = stream.Cause(w.guard.Ctx, err)
	class := Classify(err)
	if lostBy(class) == "" {
		w.outcome.err = err
		return false
	}
	w.guard.Heard(now)
	key, unusable := lossOf(event, err)
	r.skipped(err, key, unusable)
	if r.machine.healing.lost(class, time.Now()) {
		w.outcome.err = err
	}
	return true
}

// bookmarked ends the watch at a bookmark if there is something else to do.
func (r *Reflector[T]) bookmarked(w *openWatch[T], version string) {
	if w.outcome.err != nil {
		return
	}
	w.outcome.bookmarks++
	r.bookmarks.Store(true)
	switch {
	case store.Version(version).Before(store.Version(w.position.at)): // a probe can tell why
		r.prober.within(0)
	case r.machine.healing.due(time.Now()): // a lost event is still to be healed, and now it may
		w.outcome.err = &fault{class: r.machine.healing.doubt, text: "an event was lost or did not fit earlier, and the relist that heals it may be made now"}
	}
}

// pass writes an event into the store.
func (r *Reflector[T]) pass(event listwatch.Event[T]) (err error) {
	sized, ok := r.store.(store.Sized[T])
	ok = ok && event.Bytes > 0
	switch event.Type {
	case watch.Added, watch.Modified:
		switch {
		case ok:
			err = sized.PutSized(event.Object, event.Bytes)
		case event.Type == watch.Added:
			err = r.store.Add(event.Object)
		default:
			err = r.store.Update(event.Object)
		}
	case watch.Deleted:
		if ok {
			err = sized.DeleteSized(event.Object, event.Bytes)
		} else {
			err = r.store.Delete(event.Object)
		}
	case watch.Bookmark:
		if b, ok := r.store.(store.Bookmarker); ok {
			err = b.Bookmark(event.ResourceVersion)
		}
	}
	if err != nil {
		return storeError(err)
	}
	return nil
}

// skipped counts an event or object that puts the copy in doubt, and shows it.
func (r *Reflector[T]) skipped(err error, key string, unusable bool) {
	class := Classify(err)
	r.status.change(func(s *Status) {
		if class == Unplaced {
			s.Unplaced++
		} else {
			s.Skipped++
		}
		r.status.losses.add(key, unusable)
		s.Unusable = r.status.losses.unusable
	})
	r.failing(class, err, time.Now())
}
