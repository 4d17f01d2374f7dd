package reflector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/causes"
	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// list reads the whole state into the store, in one transaction of the store's.
func (r *Reflector[T]) list(ctx context.Context, s step) {
	r.enter(Listing)
	read := r.readFor(s)
	guard := stream.Start(ctx, r.options.liveness, 0)
	r.replace(r.pages(guard.Waiting(false, r.status.requestWaits), s.options, read), read, guard)
	guard.Stop()
	r.listEnded(ctx, s, read)
}

// listEnded takes in the outcome of a list.
func (r *Reflector[T]) listEnded(ctx context.Context, s step, read *listRead) {
	if read.complete {
		r.listed(s, read)
	}
	r.ended(ctx, s, read.asked, read.outcome)
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
	lost  losses
	stale int  // of the skipped objects, those that the store keeps as they were
	ended bool // it was read to its end
	// Of the request.
	asked     time.Time
	behind    bool // a version older than the one held is taken
	confirmed bool // and a list of fewer than half of the objects held
}

func (r *Reflector[T]) readFor(s step) *listRead {
	return &listRead{
		behind: s.behind, confirmed: s.confirmed, asked: time.Now(),
		outcome: outcome{another: r.machine.held.another(s.cause)},
	}
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
	case !read.behind && store.Version(read.version).Before(store.Version(at)):
		return stream.ErrWentBack
	case read.confirmed || store.Version(at).Before(store.Version(read.version)):
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

	event listwatch.Event[T]
	err   error
	next  func() (struct{}, bool)
	stop  func() // ends the sequence, and returns when Replace has
}

// newLoad begins to replace, up to the point where the first event is wanted.
func newLoad[T store.Object](read *listRead, replace func(iter.Seq2[listwatch.Event[T], error])) *load[T] {
	l := &load[T]{read: read}
	l.next, l.stop = iter.Pull(func(wanted func(struct{}) bool) {
		replace(func(yield func(listwatch.Event[T], error) bool) {
			for wanted(struct{}{}) && yield(l.event, l.err) {
			}
		})
	})
	l.next()
	return l
}

// put hands over an event, and reports whether another one is wanted.
func (l *load[T]) put(event listwatch.Event[T], err error) bool {
	l.event, l.err = event, err
	_, wanted := l.next()
	return wanted
}

// pages yields a LIST and the pages that follow it, all of one resource version.
func (r *Reflector[T]) pages(ctx context.Context, options metav1.ListOptions, read *listRead) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for count := (pageCount{}); ; {
			list, items := r.source.List(ctx, options), 0
			for obj, err := range list.Items {
				items++
				if !yield(obj, stream.Cause(ctx, err)) {
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

// Bounds of one LIST in pages: a server, or a proxy that drops the continue parameter, may answer
// pages for ever.
const (
	// In a row; 500,000 objects, if a server filters its pages of 500 afterwards.
	maxEmptyPages = 1_000
	maxPages      = 100_000 // of one list; 50 million objects in pages of 500
)

// pageCount follows the continue tokens of one list. Of the tokens it keeps one, and keeps another
// each time that the number of pages has doubled: so a cycle of any length is found within three
// times the pages before its first repetition.
type pageCount struct {
	pages, empty int
	kept         string
	keptAt       int
}

// next takes in a page and the token that follows it. Its error ends the list.
func (p *pageCount) next(token string, items int) error {
	p.pages++
	p.empty++
	if items > 0 {
		p.empty = 0
	}
	switch {
	case token == p.kept:
		return endless("the continue token of page %d came again after page %d", p.keptAt, p.pages)
	case p.empty == maxEmptyPages:
		return endless("%d pages in a row are empty and have a continue token", p.empty)
	case p.pages == maxPages:
		return endless("%d pages, and another continue token", p.pages)
	}
	if p.pages >= 2*p.keptAt {
		p.kept, p.keptAt = token, p.pages
	}
	return nil
}

// endless is the error of a list without an end.
func endless(sign string, values ...any) error {
	return &causes.WrongAnswer{Err: fmt.Errorf("the list has no end: "+sign+
		": see whether the server, or a proxy before it, obeys the parameter continue", values...)}
}
