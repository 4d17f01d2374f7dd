package reflector

import (
	"context"
	"errors"
	"iter"
	"math"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

const (
	// watchListPatience is how long a watch list may bring nothing before its bookmark. Servers
	// that know the request begin to answer within seconds; one that ignores it is silent from then
	// on.
	watchListPatience = 10 * time.Second
	// firstPatience is how many liveness periods a watch gets until its first event or bookmark.
	// API servers send no bookmark that is not newer than the version at which the watch began
	// (seen in 1.36.3), and look once a minute. A server that has just started, in a cluster
	// without writes, was seen to send its first bookmark after up to two minutes.
	firstPatience = 2
	// overtime is how long a server may take to end a watch itself, after the timeout of the
	// request.
	overtime = 30 * time.Second
)

// openWatch is a watch under way, with the guard that ends it when it falls silent.
type openWatch[T store.Object] struct {
	ctx    context.Context
	guard  *guard
	cancel context.CancelFunc
	events iter.Seq2[listwatch.Event[T], error]

	opened  time.Time
	timeout time.Duration // the server was asked to end it then

	position position
	outcome  outcome // so far

	// Of a watch list, which is read in two parts: the initial events by the store, the rest by the
	// loop.
	pull func() (listwatch.Event[T], error, bool)
	stop func()
}

func (r *Reflector[T]) openWatch(ctx context.Context, options metav1.ListOptions, silence time.Duration) *openWatch[T] {
	timeout := r.watchTimeout().Truncate(time.Second)
	seconds := int64(timeout / time.Second)
	options.TimeoutSeconds = &seconds
	ctx, cancel := context.WithTimeoutCause(ctx, timeout+overtime, errDeadline)
	ctx, guard := guardSilence(ctx, silence)
	r.watching.Store(guard)
	return &openWatch[T]{
		ctx: ctx, guard: guard, cancel: cancel, events: r.source.Watch(ctx, options), opened: time.Now(), timeout: timeout,
	}
}

// watchTimeout is the timeout of a request: between the option and its double.
func (r *Reflector[T]) watchTimeout() time.Duration {
	return r.options.watchTimeout + time.Duration(r.random()*float64(r.options.watchTimeout))
}

func (r *Reflector[T]) openWatchList(ctx context.Context, options metav1.ListOptions) *openWatch[T] {
	w := r.openWatch(ctx, options, min(watchListPatience, r.options.liveness))
	w.pull, w.stop = iter.Pull2(w.events)
	w.events = func(yield func(listwatch.Event[T], error) bool) {
		for {
			event, err, ok := w.pull()
			if !ok || !yield(event, err) {
				return
			}
		}
	}
	return w
}

// initial yields the objects up to the bookmark that ends the initial events, from which read gets
// its version. Before that bookmark a server sends the state as additions and nothing else
// (KEP-3157); another event means that it does not know this kind of request.
func (w *openWatch[T]) initial(read *listRead) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for event, err := range w.events {
			switch {
			case err != nil:
				if !yield(none, causeOf(w.ctx, err)) {
					return
				}
			case event.Type == watch.Bookmark && event.InitialEventsEnd:
				read.version = event.ResourceVersion
				return
			case event.Type == watch.Bookmark:
			case event.Type != watch.Added:
				yield(none, errIncomplete)
				return
			case !yield(event.Object, nil):
				return
			}
		}
		yield(none, errIncomplete)
	}
}

func (w *openWatch[T]) close() {
	w.cancel()
	w.guard.stop()
	if w.stop != nil {
		w.stop()
	}
}

// closeOpen ends the watch that is under way, if there is one.
func (r *Reflector[T]) closeOpen() {
	if r.open != nil {
		r.watching.Store(nil)
		r.open.close()
		r.open = nil
	}
}

// guard ends a context when nothing has been heard for a while (invariant 8). It costs a timer per
// stream and an atomic store per event.
type guard struct {
	began   time.Time
	last    atomic.Int64 // when something was last heard, since began
	silence atomic.Int64 // the longest silence allowed
	timer   *time.Timer
	cancel  context.CancelCauseFunc
}

func guardSilence(ctx context.Context, silence time.Duration) (context.Context, *guard) {
	g := &guard{began: time.Now()}
	ctx, g.cancel = context.WithCancelCause(ctx)
	g.silence.Store(int64(silence))
	g.timer = time.AfterFunc(math.MaxInt64, g.check)
	g.timer.Reset(silence)
	return ctx, g
}

func (g *guard) heard(now time.Time) { g.last.Store(int64(now.Sub(g.began))) }

// allow changes the longest silence, from now on.
func (g *guard) allow(silence time.Duration) {
	g.silence.Store(int64(silence))
	g.heard(time.Now())
	g.timer.Reset(silence) // it may have been set for longer
}

func (g *guard) check() {
	left := g.last.Load() + g.silence.Load() - int64(time.Since(g.began))
	if left <= 0 {
		g.cancel(errSilent)
		return
	}
	g.timer.Reset(time.Duration(left))
}

func (g *guard) stop() {
	g.timer.Stop()
	g.cancel(nil)
}

// causeOf puts the reason why ctx was ended in place of the error that its end caused.
func causeOf(ctx context.Context, err error) error {
	if err == nil { // before anything is allocated
		return nil
	}
	var unusable *listwatch.DecodeError
	if errors.As(err, &unusable) {
		return err
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, errSilent) || errors.Is(cause, errDeadline) || errors.Is(cause, errDoubted) {
		return cause
	}
	return err
}
