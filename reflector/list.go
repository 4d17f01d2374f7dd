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
	r.replace(stream.Pages(guard.Waiting(false, r.status.requestWaits), r.source, s.options, &read.version), read, guard)
	guard.Stop()
	r.listEnded(ctx, read)
}

// listEnded takes in the outcome of a list.
func (r *Reflector[T]) listEnded(ctx context.Context, read *listRead) {
	if read.complete {
		r.listed(read.step, read)
	}
	r.ended(ctx, read.step, read.asked, read.outcome)
}

func (r *Reflector[T]) listed(s step, read *listRead) {
	r.unordered, r.resumed = read.version == "" || read.version == "0", false
	first, now := false, time.Now()
	r.status.change(func(st *Status) {
		first = !st.Synced
		r.status.proof.listed(read.version, read.asked, s.options.ResourceVersion == "")
		st.Synced, st.LastContact, st.ProvenAt = true, now, r.status.proof.at
		r.status.reachedLocked(read.version, now)
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
	r.log.V(2).Info("Listed", "cause", s.cause, "watchList", s.kind == doWatchList, "items", read.items, "resourceVersion", read.version)
	if first {
		close(r.synced)
	}
}

// listRead is the record of a list while it is read, without its objects.
type listRead struct {
	outcome
	step  step
	asked time.Time
	lost  losses
	stale int  // of the skipped objects, those that the store keeps as they were
	ended bool // it was read to its end
}

func (r *Reflector[T]) readFor(s step) *listRead {
	return &listRead{step: s, asked: time.Now(), outcome: outcome{another: r.machine.held.another(s.cause)}}
}

// replace hands the list to the store. A store that takes a list which broke off, or stops in the
// middle of one, has not taken a state.
func (r *Reflector[T]) replace(items iter.Seq2[T, error], read *listRead, guard *stream.Guard) {
	err := r.store.Replace(r.usable(items, read, guard), func() string { return read.version })
	switch {
	case read.err != nil:
	case err != nil:
		read.err = storeError(err)
	case !read.ended:
		read.err = storeError(errors.New("it stopped reading the list before its end"))
	}
	read.complete = read.err == nil
}

// usable filters a list for the store: it yields objects, and the error that breaks the list off.
// An undecodable object is replaced by its last good state, or skipped if the store cannot show
// that: an object that the server has must not seem deleted.
func (r *Reflector[T]) usable(items iter.Seq2[T, error], read *listRead, guard *stream.Guard) iter.Seq2[T, error] {
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
				if obj, ok = r.content().Get(unusable.Object); !ok {
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
	case !read.step.behind && store.Version(read.version).Before(store.Version(at)):
		return stream.ErrWentBack
	case read.step.confirmed || store.Version(at).Before(store.Version(read.version)):
		return nil
	}
	if n, held := read.items+read.skipped, r.content().Len(); 2*n < held {
		return &fault{class: Shrunk, text: fmt.Sprintf("the list has %d objects, %d are held, and its version is not newer: a second list must agree", n, held)}
	}
	return nil
}

// contact notes that the server has told an object.
func (r *Reflector[T]) contact(g *stream.Guard) {
	now := time.Now()
	g.Heard(now)
	r.status.change(func(s *Status) { s.LastContact, s.LastEvent = now, now })
}

// load is a store's Replace at work beside the watch that brings its objects. Replace reads a
// sequence, and a watch is one, so one of the two is a coroutine: Replace, which ends first. A
// watch that has its state costs no coroutine then.
type load[T store.Object] struct {
	read *listRead // complete or not once put has returned false, or stop has returned

	obj  T
	err  error
	next func() (struct{}, bool)
	stop func() // ends the sequence, and returns when Replace has
}

// newLoad begins to replace, up to the point where the first object is wanted.
func newLoad[T store.Object](read *listRead, replace func(iter.Seq2[T, error])) *load[T] {
	l := &load[T]{read: read}
	l.next, l.stop = iter.Pull(func(wanted func(struct{}) bool) {
		replace(func(yield func(T, error) bool) {
			for wanted(struct{}{}) && yield(l.obj, l.err) {
			}
		})
	})
	l.next()
	return l
}

// put hands over an object, or an error, and reports whether another one is wanted.
func (l *load[T]) put(obj T, err error) bool {
	l.obj, l.err = obj, err
	_, wanted := l.next()
	return wanted
}
