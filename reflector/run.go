package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tributary-go/tributary/internal/pace"
)

// run takes the machine's steps and tells it their outcomes, until ctx ends.
func (r *Reflector[T]) run(ctx context.Context) error {
	for {
		s := r.machine.next()
		switch {
		case ctx.Err() != nil:
			return nil
		case s.kind == doStop:
			return fmt.Errorf("reflector: stopped by a final error: %w", s.err)
		case s.kind == doWait:
			if r.waiting(s); !pace.Sleep(ctx, s.wait) {
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
		if class != WentBack { // the watch will show any other failure
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
