package reflector

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// list reads the whole state into the store, in one transaction of the store's.
func (r *Reflector[T]) list(ctx context.Context, s step) outcome {
	r.enter(Listing)
	if s.cached { // before the store shows the state
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

// listRead is the record of a list while it is read, without its objects.
type listRead struct {
	version string // of the list, once it has ended
	items   int
	skipped int   // objects that could not be decoded
	stale   int   // of these, those that the store keeps as they were
	err     error // that broke the list off
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

// usable filters a list for the store: it yields objects, and the error that breaks the list off.
// An undecodable object is replaced by its last good state, or skipped if the store cannot show
// that: an object that the server has must not seem deleted.
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

// contact notes that the server has told an object.
func (r *Reflector[T]) contact(g *guard) {
	now := time.Now()
	g.heard(now)
	r.status.change(func(s *Status) { s.LastContact, s.LastEvent = now, now })
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
		guard.heard(time.Now()) // no contact in Status: the watch brings that
	}
	o := outcome{version: list.Meta().ResourceVersion}
	if behind(o.version, r.machine.held.version) {
		o.err = errWentBack
	}
	return o
}
