package reflector

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// run does what the machine says and tells it what happened, until ctx ends.
func (r *Reflector[T]) run(ctx context.Context) error {
	for {
		s := r.machine.next()
		switch {
		case ctx.Err() != nil:
			return nil
		case s.kind == doStop:
			return fmt.Errorf("reflector: stopped by a final error: %w", s.err)
		case s.kind == doWait:
			if r.waiting(s); !sleep(ctx, s.wait) {
				return nil
			}
			continue
		}
		began := time.Now()
		var o outcome
		switch s.kind {
		case doWatch:
			o = r.watch(ctx, s)
		case doProbe:
			o = r.probe(ctx, s)
		default:
			o = r.list(ctx, s)
		}
		if ctx.Err() != nil {
			return nil
		}
		o.at = time.Now()
		o.lived = o.at.Sub(began)
		class := r.machine.ended(s, o)
		r.report(s, class, o)
	}
}

// report shows the end of a request in Status, log and metrics.
func (r *Reflector[T]) report(s step, class Class, o outcome) {
	r.status.change(func(st *Status) { st.MayBeOld = r.machine.proof.age != newest })
	switch s.kind {
	case doProbe:
		r.probed(class)
		if class != WentBack { // what else it fails with, the watch will show
			return
		}
	case doWatch:
		r.options.metrics.WatchEnded(WatchStats{Class: class, Duration: o.lived, Events: o.contacts - o.bookmarks})
	default:
		r.options.metrics.ListEnded(ListStats{
			Cause: s.cause, WatchList: s.kind == doWatchList, Class: class, Duration: o.lived, Items: o.items,
		})
	}
	r.log.V(2).Info("Request ended", "class", class, "list", s.kind != doWatch, "took", o.lived, "resourceVersion", r.machine.held.version)
	switch {
	case o.complete && s.poll: // the watch is still refused
		r.status.polled(o.skipped == 0)
	case o.complete:
		r.recovered(o.skipped == 0)
	case class == Short:
		r.failing(class, errors.New("the watch ended at once, without an event"), o.at)
	case class != OK:
		r.failing(class, o.err, o.at)
	}
}

// probed shows that the server answers again, and that its last watch was open. Only a stream can
// show that streams bring something again.
func (r *Reflector[T]) probed(class Class) {
	if class == OK && r.Status().Class != Silent {
		r.recovered(false)
	}
}

// recovered notes that the server answers, and with healed that the copy is whole.
func (r *Reflector[T]) recovered(healed bool) {
	if r.status.well(healed) {
		r.alarmed = false
		r.log.Info("List-watch is well again", "resourceVersion", r.machine.held.version)
	}
}

func (r *Reflector[T]) enter(p Phase) {
	r.status.change(func(s *Status) { s.Phase, s.RetryAt, s.RetryAfter = p, time.Time{}, 0 })
}

// waiting shows until when, and whether the server asked for it.
func (r *Reflector[T]) waiting(s step) {
	r.status.change(func(st *Status) { st.Phase, st.RetryAt, st.RetryAfter = Waiting, time.Now().Add(s.wait), s.told })
}

// list reads the whole state into the store, in one transaction of the store's.
func (r *Reflector[T]) list(ctx context.Context, s step) outcome {
	r.enter(Listing)
	if s.cached { // before the store shows the state to anybody
		r.status.change(func(st *Status) { st.MayBeOld = true })
	}
	read := &listRead{behind: s.behind}
	var o outcome
	if s.kind == doWatchList {
		w := r.openWatchList(ctx, s.options)
		if o = r.replace(w.initial(read), read, w.guard); o.complete {
			w.guard.allow(firstPatience * r.options.liveness)
			r.open = w
		} else {
			w.close()
		}
	} else {
		guarded, guard := guardSilence(ctx, r.options.liveness)
		o = r.replace(r.pages(guarded, s.options, read), read, guard)
		guard.stop()
	}
	if o.complete {
		r.listed(s, o, read)
	}
	return o
}

func (r *Reflector[T]) listed(s step, o outcome, read *listRead) {
	r.unordered = o.version == "" || o.version == "0"
	first, now := false, time.Now()
	r.status.change(func(st *Status) {
		first = !st.Synced
		st.Synced, st.LastContact = true, now
		st.reached(o.version, now)
		st.Stale = read.stale
		if st.Lists == nil {
			st.Lists = map[Class]int{}
		}
		st.Lists[s.cause]++
	})
	r.log.V(2).Info("Listed", "cause", s.cause, "watchList", s.kind == doWatchList, "items", read.items, "resourceVersion", o.version)
	if first {
		close(r.synced)
	}
}

// listRead is what is known of a list besides its objects.
type listRead struct {
	version string // of the list, once it has ended
	items   int
	skipped int   // objects that could not be decoded
	stale   int   // of these, those that the store keeps as they were
	err     error // what broke the list off
	ended   bool
	behind  bool // a version older than the one held is taken
}

// replace hands the list to the store. A store that takes a list which broke off, or stops in the
// middle of one, has not taken a state.
func (r *Reflector[T]) replace(items iter.Seq2[T, error], read *listRead, guard *guard) outcome {
	err := r.store.Replace(r.usable(items, read, guard), func() string { return read.version })
	switch {
	case read.err != nil:
		err = read.err
	case err != nil:
		err = storeError{err}
	case !read.ended:
		err = storeError{errors.New("it stopped reading the list before its end")}
	}
	return outcome{err: err, complete: err == nil, version: read.version, items: read.items, skipped: read.skipped}
}

// usable passes on what the store may see of a list: objects, and the error that breaks it off. An
// object that cannot be decoded is skipped, or stands in as it was last seen when the store can
// still show it: an object that the server has must not seem deleted.
func (r *Reflector[T]) usable(items iter.Seq2[T, error], read *listRead, guard *guard) iter.Seq2[T, error] {
	held, _ := r.store.(store.Snapshotter[T])
	return func(yield func(T, error) bool) {
		for obj, err := range items {
			var unusable *listwatch.DecodeError
			switch {
			case err == nil:
				r.contact(guard)
				read.items++
			case errors.As(err, &unusable):
				r.contact(guard)
				r.skipped(err)
				read.skipped++
				var ok bool
				if held != nil {
					obj, ok = held.Snapshot().Get(unusable.Object)
				}
				if !ok {
					continue
				}
				read.stale++
			default:
				read.err = err
				yield(obj, err)
				return
			}
			if !yield(obj, nil) {
				return
			}
		}
		if !read.behind && behind(read.version, r.machine.held.version) {
			var none T
			read.err = errWentBack
			yield(none, errWentBack)
			return
		}
		read.ended = true
	}
}

// pages yields a LIST and the pages that follow it, all of one resource version.
func (r *Reflector[T]) pages(ctx context.Context, options metav1.ListOptions, read *listRead) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for count := (pageCount{}); ; {
			list, items := r.source.List(ctx, options), 0
			for obj, err := range list.Items {
				items++
				if !yield(obj, causeOf(ctx, err)) {
					return
				}
			}
			meta := list.Meta()
			read.version = meta.ResourceVersion
			if meta.Continue == "" {
				return
			}
			if err := count.next(meta.Continue, items); err != nil {
				var none T
				yield(none, err)
				return
			}
			options.Continue = meta.Continue
			options.ResourceVersion, options.ResourceVersionMatch = "", "" // the token has them
		}
	}
}

// probe asks for the newest version that the server has, by a consistent LIST of one object.
func (r *Reflector[T]) probe(ctx context.Context, s step) outcome {
	guarded, guard := guardSilence(ctx, min(probePatience, r.options.liveness))
	defer guard.stop()
	list := r.source.List(guarded, s.options)
	for _, err := range list.Items {
		var unusable *listwatch.DecodeError
		if err != nil && !errors.As(err, &unusable) {
			return outcome{err: causeOf(guarded, err)}
		}
		guard.heard(time.Now()) // no contact in Status: that is what the watch brings
	}
	o := outcome{version: list.Meta().ResourceVersion}
	if behind(o.version, r.machine.held.version) {
		o.err = errWentBack
	}
	return o
}

// watch follows the changes, over the connection of the watch list where there is one.
func (r *Reflector[T]) watch(ctx context.Context, s step) outcome {
	r.enter(Watching)
	r.status.change(func(st *Status) { st.Watches++ })
	w := r.open
	if w == nil {
		w = r.openWatch(ctx, s.options, r.untilFirst())
		if s.quiet {
			w.guard.lookAfter(r.quietFor(s))
		}
	}
	r.open = w
	defer r.closeOpen()
	o := outcome{}
	p := position{at: s.options.ResourceVersion, before: s.options.ResourceVersion, unordered: r.unordered}
	for event, err := range w.events {
		if !r.take(&o, &p, w, event, err) {
			break
		}
	}
	o.version = p.at
	if o.err == nil {
		o.err = causeOf(w.ctx, w.ctx.Err()) // a source may end cleanly when its context does
	}
	o.due = time.Since(w.opened) >= w.timeout-w.timeout/10
	return o
}

// untilFirst is how long a watch may be silent from its start. After one that was silent the next
// gets no extra time, so that a dead connection does not get it again and again.
func (r *Reflector[T]) untilFirst() time.Duration {
	if r.machine.watches.silent > 0 {
		return r.options.liveness
	}
	return firstPatience * r.options.liveness
}

// quietFor is how long a watch that goes on after an interruption may bring nothing before a probe:
// 5 to 15 s by default, so that the probes of many clients spread, and the whole is over within the
// liveness period.
func (r *Reflector[T]) quietFor(s step) time.Duration {
	if s.deaf {
		return min(shortWatch, r.options.liveness/18)
	}
	return r.options.liveness/18 + time.Duration(r.random()*float64(r.options.liveness/9))
}

// take takes in one event, and reports whether the watch goes on. Status is edited once, when the
// store has the event, so that contact, version and count are always of one event.
func (r *Reflector[T]) take(o *outcome, p *position, w *openWatch[T], event listwatch.Event[T], err error) (goOn bool) {
	now, isEvent := time.Now(), event.Type != watch.Bookmark
	var where verdict
	if err == nil {
		if o.contacts == 0 {
			r.recovered(false)
			w.guard.allow(r.options.liveness)
		}
		o.contacts++
		w.guard.heard(now)
		where, err = r.write(p, event)
	}
	err = causeOf(w.ctx, err)
	class := classify(err)
	if err != nil && lostBy(class) == "" {
		o.err = err
		return false
	}
	if err != nil {
		w.guard.heard(now)
		r.skipped(err)
	}
	o.err = r.endsWatch(o, p, event, err, class)
	r.status.change(func(s *Status) {
		s.LastContact = now
		if isEvent {
			s.LastEvent = now
		}
		if o.err != nil {
			return
		}
		s.reached(p.at, now)
		s.MayBeOld = s.MayBeOld && r.machine.proof.caughtUp(p.at)
		if isEvent && err == nil && (where == placed || where == displaced) {
			s.Events++
		}
	})
	return o.err == nil
}

// endsWatch is why a watch ends after an event that was taken in, or was lost by err; nil if the
// watch goes on.
func (r *Reflector[T]) endsWatch(o *outcome, p *position, event listwatch.Event[T], err error, class Class) error {
	if err != nil && r.machine.healing.lost(class, time.Now()) {
		return err
	}
	if event.Type != watch.Bookmark {
		return nil
	}
	o.bookmarks++
	switch {
	case r.machine.proof.suspect && behind(event.ResourceVersion, p.at): // a probe can tell why
		return errQuiet
	case r.machine.healing.due(time.Now()): // a lost event is still to be healed, and now it may
		return doubtError{r.machine.healing.doubt}
	}
	return nil
}

// write judges one event and passes it to the store.
func (r *Reflector[T]) write(p *position, event listwatch.Event[T]) (verdict, error) {
	where := r.place(p, event)
	switch {
	case where == unplaced:
		return where, errUnplaced
	case where == repeated:
		return where, nil
	case where == displaced, where == replayed:
		// The relist may wait for the next bookmark: no object is missing.
		r.machine.healing.lost(Unplaced, time.Now())
		r.skipped(errUnplaced)
		if where == replayed || event.Type == watch.Bookmark {
			return where, nil
		}
	}
	if err := r.pass(event); err != nil {
		return where, storeError{err}
	}
	return where, nil
}

// pass writes an event into the store.
func (r *Reflector[T]) pass(event listwatch.Event[T]) error {
	sized, ok := r.store.(store.Sized[T])
	ok = ok && event.Bytes > 0
	switch event.Type {
	case watch.Added, watch.Modified:
		switch {
		case ok:
			return sized.PutSized(event.Object, event.Bytes)
		case event.Type == watch.Added:
			return r.store.Add(event.Object)
		}
		return r.store.Update(event.Object)
	case watch.Deleted:
		if ok {
			return sized.DeleteSized(event.Object, event.Bytes)
		}
		return r.store.Delete(event.Object)
	case watch.Bookmark:
		if b, ok := r.store.(store.Bookmarker); ok {
			return b.Bookmark(event.ResourceVersion)
		}
	}
	return nil
}

// skipped counts an event or object that puts the copy in doubt, and shows it.
func (r *Reflector[T]) skipped(err error) {
	class := classify(err)
	r.status.change(func(s *Status) {
		if class == Unplaced {
			s.Unplaced++
		} else {
			s.Skipped++
		}
	})
	r.failing(class, err, time.Now())
}

// contact notes that the server has told an object.
func (r *Reflector[T]) contact(g *guard) {
	now := time.Now()
	g.heard(now)
	r.status.change(func(s *Status) { s.LastContact, s.LastEvent = now, now })
}

// watchTimeout is what the server is asked for: between the option and its double.
func (r *Reflector[T]) watchTimeout() time.Duration {
	return r.options.watchTimeout + time.Duration(r.random()*float64(r.options.watchTimeout))
}

// behind reports whether a version is older than the one held. Versions that cannot be compared are
// not.
func behind(version, held string) bool {
	order, _ := store.CompareVersions(version, held)
	return order < 0
}

// sleep reports whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
