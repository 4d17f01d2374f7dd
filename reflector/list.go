package reflector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// list reads the whole state into the store, in one transaction of the store's.
func (r *Reflector[T]) list(ctx context.Context, s step) {
	r.enter(Listing)
	read := r.readFor(s)
	guard := stream.Start(ctx, r.options.liveness, 0)
	o := r.replace(r.pages(guard.Waiting(false, r.status.requestWaits), s.options, read), read, guard)
	guard.Stop()
	r.listEnded(ctx, s, o, read)
}

// listEnded takes in the outcome of a list, and reports whether it is the state of the store now.
func (r *Reflector[T]) listEnded(ctx context.Context, s step, o outcome, read *listRead) bool {
	if o.complete {
		r.listed(s, o, read)
	}
	r.ended(ctx, s, read.asked, o)
	return o.complete
}

func (r *Reflector[T]) listed(s step, o outcome, read *listRead) {
	r.unordered, r.resumed = o.version == "" || o.version == "0", false
	first, now := false, time.Now()
	r.status.change(func(st *Status) {
		first = !st.Synced
		r.status.proof.listed(o.version, read.asked, s.options.ResourceVersion == "")
		st.Synced, st.LastContact, st.ProvenAt = true, now, r.status.proof.at
		r.status.reachedLocked(o.version, now)
		r.status.listedAt, r.status.listTook = now, now.Sub(read.asked)
		if r.status.losses = read.lost; r.doubts.Load() == nil { // none has come since
			st.Contradiction = nil
		}
		st.Listed, st.Unusable, st.Stale = read.items+read.skipped, read.skipped, read.stale
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
	skipped int // objects that could not be decoded
	lost    losses
	stale   int   // of these, those that the store keeps as they were
	err     error // that broke the list off
	ended   bool
	// Of the request.
	asked     time.Time
	behind    bool // a version older than the one held is taken
	another   bool // it is of another history than the content
	confirmed bool // and a list of fewer than half of the objects held
}

func (r *Reflector[T]) readFor(s step) *listRead {
	return &listRead{behind: s.behind, confirmed: s.confirmed, another: r.machine.held.another(s.cause), asked: time.Now()}
}

// replace hands the list to the store. A store that takes a list which broke off, or stops in the
// middle of one, has not taken a state.
func (r *Reflector[T]) replace(items iter.Seq2[T, error], read *listRead, guard *stream.Guard) outcome {
	err := r.store.Replace(r.usable(items, read, guard), func() string { return read.version })
	switch {
	case read.err != nil:
		err = read.err
	case err != nil:
		err = storeError{err}
	case !read.ended:
		err = storeError{errors.New("it stopped reading the list before its end")}
	}
	return outcome{err: err, complete: err == nil, another: read.another, version: read.version, items: read.items, skipped: read.skipped}
}

// usable filters a list for the store: it yields objects, and the error that breaks the list off.
// An undecodable object is replaced by its last good state, or skipped if the store cannot show
// that: an object that the server has must not seem deleted.
func (r *Reflector[T]) usable(items iter.Seq2[T, error], read *listRead, guard *stream.Guard) iter.Seq2[T, error] {
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
				read.skipped++
				key := cmp.Or(unusable.Object, fmt.Sprint("object ", read.items+read.skipped))
				read.lost.add(key, true)
				r.skipped(err, key, true)
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
		if read.err = r.refuses(read); read.err != nil {
			var none T
			yield(none, read.err)
			return
		}
		read.another = read.another || store.Version(read.version).Before(store.Version(r.machine.held.version))
		if to, ok := r.store.(store.Historian); ok && read.another {
			to.AnotherHistory()
		}
		read.ended = true
	}
}

// refuses is the reason why a list that was read to its end is no newer state of this collection.
func (r *Reflector[T]) refuses(read *listRead) error {
	at := r.machine.held.version
	versioned := at != "" && at != "0"
	switch {
	case versioned && (read.version == "" || read.version == "0"):
		return errNoVersion
	case !read.behind && store.Version(read.version).Before(store.Version(at)):
		return stream.ErrWentBack
	case read.confirmed || store.Version(at).Before(store.Version(read.version)):
		return nil
	}
	held, ok := r.store.(store.Snapshotter[T])
	if n := read.items + read.skipped; ok && 2*n < held.Snapshot().Len() {
		return shrunkError{n, held.Snapshot().Len()}
	}
	return nil
}

// contact notes that the server has told an object.
func (r *Reflector[T]) contact(g *stream.Guard) {
	now := time.Now()
	g.Heard(now)
	r.status.change(func(s *Status) { s.LastContact, s.LastEvent = now, now })
}
