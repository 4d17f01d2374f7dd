package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tributary-go/tributary/internal/pace"
)

// run takes the machine's steps until ctx ends.
func (r *Reflector[T]) run(ctx context.Context) error {
	for {
		s := r.next()
		if ctx.Err() != nil {
			return nil
		}
		r.distrusts.Store(r.Status().Contradiction != nil)
		switch s.kind {
		case doStop:
			return fmt.Errorf("reflector: stopped by a final error: %w", s.err)
		case doWait:
			if r.waiting(s); !pace.Sleep(ctx, s.wait) {
				return nil
			}
		case doList:
			r.list(ctx, s)
		default:
			r.watch(ctx, s)
		}
	}
}

// next is the machine's next step, with the doubts that came meanwhile.
func (r *Reflector[T]) next() step {
	if reason := r.doubts.Swap(nil); reason != nil {
		r.doubted(*reason)
	}
	return r.machine.next()
}

// ended tells the machine the outcome of a step, unless Run ends.
func (r *Reflector[T]) ended(ctx context.Context, s step, began time.Time, o outcome) {
	if ctx.Err() != nil {
		return
	}
	o.at = time.Now()
	if o.lived = o.at.Sub(began); s.kind == doWatch {
		o.lived = min(o.lived, o.sent) // without a wait at the client
	}
	class := r.machine.ended(s, o)
	r.bookmarks.Store(r.machine.watches.bookmarks)
	r.report(s, class, o)
}

// report shows the end of a request in Status, log and metrics.
func (r *Reflector[T]) report(s step, class Class, o outcome) {
	interrupted := false
	switch s.kind {
	case doWatch:
		// the server may have gone back
		if interrupted = r.machine.watches.interrupted(class, o); interrupted {
			r.status.interrupted(o.at)
			r.prober.within(r.soon())
		}
		r.options.metrics.WatchEnded(WatchStats{Class: class, Duration: o.lived, Events: o.contacts - o.bookmarks})
	default:
		r.status.change(func(*Status) { r.status.polls = s.poll || r.machine.watches.lists > 1 })
		r.options.metrics.ListEnded(ListStats{
			Cause: s.cause, WatchList: s.kind == doWatchList, Class: class, Duration: o.lived, Items: o.items,
		})
		switch {
		case !o.complete:
		case s.cached:
			r.prober.within(0)
		case s.options.ResourceVersion != "": // it says nothing of the server's present
			r.prober.within(r.soon())
		}
	}
	r.log.V(2).Info("Request ended", "class", class, "list", s.kind != doWatch, "took", o.lived, "resourceVersion", r.machine.held.version)
	if o.complete && o.skipped == 0 && r.doubts.Load() == nil {
		r.status.healed()
	}
	switch {
	case o.complete && s.poll: // the watch is still refused
	case o.complete:
		r.recovered()
	case class == Short:
		r.failing(class, errors.New("the watch ended at once, without an event"), o.at)
	case class != OK:
		r.failing(class, o.err, o.at)
	case interrupted: // it ended cleanly, before its time
		r.recovered()
	}
}

// recovered notes that the server answers. It may be called on any goroutine.
func (r *Reflector[T]) recovered() {
	if r.status.well() {
		r.alarmed.Store(false)
		r.log.Info("List-watch is well again", "resourceVersion", r.Status().ResourceVersion)
	}
}

func (r *Reflector[T]) enter(p Phase) {
	r.status.change(func(s *Status) { s.Phase, s.RetryAt, s.RetryAfter = p, time.Time{}, 0 })
}

// waiting shows until when, and whether the server asked for it.
func (r *Reflector[T]) waiting(s step) {
	r.status.change(func(st *Status) { st.Phase, st.RetryAt, st.RetryAfter = Waiting, time.Now().Add(s.wait), s.told })
}

// announce logs when the copy ceases to be right, and when it is right again. The log's bound for a
// proof is the one that Ready is usually given. Before the first list, the failure's line says all.
func (r *Reflector[T]) announce() {
	const bound = 3 * time.Minute
	v := r.Status().Verdict(bound)
	if v.State() == StateSyncing {
		return
	}
	if before := r.told.Swap(&v.Class); before != nil && *before == v.Class || before == nil && v.Class == OK {
		return
	}
	if v.Class == OK {
		r.log.Info("The copy is proven to be right again")
		return
	}
	r.log.Error(v.Err, "The copy is not right", "verdict", v.Class)
}
