package reflector

import (
	"context"
	"errors"
	"iter"
	"math"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/sending"
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
	ctx     context.Context
	guard   *guard
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
		silence = min(watchListPatience, r.options.liveness)
	}
	timeout := r.watchTimeout().Truncate(time.Second)
	seconds := int64(timeout / time.Second)
	s.options.TimeoutSeconds = &seconds
	ctx, guard := r.guarded(ctx, silence, timeout+overtime)
	r.watching.Store(guard)
	return &openWatch[T]{ctx: ctx, guard: guard, events: r.source.Watch(ctx, s.options), timeout: timeout, step: s}
}

// watchTimeout is the timeout of a request: between the option and its double.
func (r *Reflector[T]) watchTimeout() time.Duration {
	return r.options.watchTimeout + time.Duration(r.random()*float64(r.options.watchTimeout))
}

// initial yields the objects up to the bookmark that ends the initial events, from which read gets
// its version. Before that bookmark a server sends the state as additions and nothing else
// (KEP-3157); another event means that it does not know this kind of request.
func (w *openWatch[T]) initial(events iter.Seq2[listwatch.Event[T], error], read *listRead) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for event, err := range events {
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

func (r *Reflector[T]) closeWatch(w *openWatch[T]) {
	r.watching.Store(nil)
	w.guard.stop()
}

// guard ends a context when nothing has been heard for a while (invariant 8), or when it has lasted
// too long. Both times begin when the request is sent. It costs a timer per stream and an atomic
// store per event.
type guard struct {
	began   time.Time
	sent    atomic.Int64  // when the request was sent, since began; unsent while it waits
	last    atomic.Int64  // when something was last heard, since began
	silence atomic.Int64  // the longest silence allowed
	life    time.Duration // the longest time allowed; 0 for any
	timer   *time.Timer
	cancel  context.CancelCauseFunc
}

// unsent stands for a request that waits at the client.
const unsent = -1

func guardSilence(ctx context.Context, silence, life time.Duration) (context.Context, *guard) {
	g := &guard{began: time.Now(), life: life}
	ctx, g.cancel = context.WithCancelCause(ctx)
	g.silence.Store(int64(silence))
	g.timer = time.AfterFunc(math.MaxInt64, g.check)
	g.timer.Reset(g.left())
	return ctx, g
}

// guarded is guardSilence for a list or watch, whose waits at the client Status shows.
func (r *Reflector[T]) guarded(ctx context.Context, silence, life time.Duration) (context.Context, *guard) {
	ctx, g := guardSilence(ctx, silence, life)
	return g.waiting(ctx, false, r.status.requestWaits), g
}

// waiting returns a context for requests that may wait at the client before they are sent. show
// hears of each such wait, and nil at its end.
func (g *guard) waiting(ctx context.Context, yields bool, show func(*sending.Wait)) context.Context {
	return sending.For(ctx, sending.Reader{Yields: yields, Waits: func(w sending.Wait) func() {
		g.sent.Store(unsent)
		show(&w)
		return func() {
			show(nil)
			g.begin()
		}
	}})
}

// begin notes that the request is sent now.
func (g *guard) begin() {
	now := time.Now()
	g.heard(now)
	g.sent.Store(int64(now.Sub(g.began)))
	g.timer.Reset(g.left())
}

// lived is the time since the request was sent.
func (g *guard) lived() time.Duration {
	sent := g.sent.Load()
	if sent == unsent {
		return 0
	}
	return time.Since(g.began) - time.Duration(sent)
}

func (g *guard) heard(now time.Time) { g.last.Store(int64(now.Sub(g.began))) }

// allow changes the longest silence, from now on.
func (g *guard) allow(silence time.Duration) {
	g.silence.Store(int64(silence))
	g.heard(time.Now())
	g.timer.Reset(g.left()) // it may have been set for longer
}

func (g *guard) check() {
	left := g.left()
	switch {
	case g.sent.Load() == unsent: // begin sets the timer
	case left > 0:
		g.timer.Reset(left)
	case g.life > 0 && g.lived() >= g.life:
		g.cancel(errDeadline)
	default:
		g.cancel(errSilent)
	}
}

// left is the time to the end of the stream if nothing is heard until then.
func (g *guard) left() time.Duration {
	left := time.Duration(g.last.Load()+g.silence.Load()) - time.Since(g.began)
	if g.life > 0 {
		left = min(left, g.life-g.lived())
	}
	return left
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
