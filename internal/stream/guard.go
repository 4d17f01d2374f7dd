package stream

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/tributary-go/tributary/internal/sending"
)

// Guard ends a request when nothing has been heard for a while, or when it has lasted too long.
// Both times begin when the request is sent. It costs a timer for a stream, unless its owner looks
// after it by Check, and an atomic store for an event. All methods are safe for concurrent use.
type Guard struct {
	// Ctx is that of the request.
	Ctx context.Context

	began   time.Time
	sent    atomic.Int64  // when the request was sent, since began; unsent while it waits
	last    atomic.Int64  // when something was last heard, since began
	silence atomic.Int64  // the longest silence allowed
	life    time.Duration // the longest time allowed; 0 for any
	timer   *time.Timer   // nil: the owner calls Check
	cancel  context.CancelCauseFunc
}

// unsent stands for a request that waits at the client.
const unsent = -1

// NewGuard guards a request that is sent at Begin. Its owner calls Check now and then.
func NewGuard(ctx context.Context, silence time.Duration) *Guard {
	g := &Guard{began: time.Now()}
	g.Ctx, g.cancel = context.WithCancelCause(ctx)
	g.silence.Store(int64(silence))
	g.sent.Store(unsent)
	return g
}

// Start guards a request that is sent now, by a timer.
func Start(ctx context.Context, silence, life time.Duration) *Guard {
	g := NewGuard(ctx, silence)
	g.sent.Store(0)
	g.life = life
	g.timer = time.AfterFunc(math.MaxInt64, g.wake)
	g.timer.Reset(g.left())
	return g
}

// StartWatch is Start for a watch that the server is to end after timeout.
func StartWatch(ctx context.Context, silence, timeout time.Duration) *Guard {
	return Start(ctx, silence, timeout+overtime)
}

// Waiting returns a context for requests that may wait at the client before they are sent. show
// hears of each such wait, and nil at its end.
func (g *Guard) Waiting(yields bool, show func(*sending.Wait)) context.Context {
	return sending.For(g.Ctx, sending.Reader{Yields: yields, Waits: func(w sending.Wait) func() {
		g.sent.Store(unsent)
		show(&w)
		return func() {
			show(nil)
			g.Begin()
		}
	}})
}

// Begin notes that the request is sent now.
func (g *Guard) Begin() {
	now := time.Now()
	g.Heard(now)
	g.sent.Store(int64(now.Sub(g.began)))
	g.reset()
}

// Limit ends a watch that the server has not ended after timeout. Call it before Begin.
func (g *Guard) Limit(timeout time.Duration) { g.life = timeout + overtime }

// Lived is the time since the request was sent.
func (g *Guard) Lived() time.Duration {
	sent := g.sent.Load()
	if sent == unsent {
		return 0
	}
	return time.Since(g.began) - time.Duration(sent)
}

// Heard notes a sign of life.
func (g *Guard) Heard(now time.Time) { g.last.Store(int64(now.Sub(g.began))) }

// Allow changes the longest silence, from now on.
func (g *Guard) Allow(silence time.Duration) {
	g.silence.Store(int64(silence))
	g.Heard(time.Now())
	g.reset() // it may have been set for longer
}

// Check ends the request if it is time, and returns the time that is left.
func (g *Guard) Check() (left time.Duration) {
	left = g.left()
	switch {
	case g.sent.Load() == unsent: // Begin counts anew
		return 0
	case left > 0:
		return left
	case g.life > 0 && g.Lived() >= g.life:
		g.cancel(ErrDeadline)
	default:
		g.cancel(ErrSilent)
	}
	return 0
}

func (g *Guard) wake() {
	if left := g.Check(); left > 0 {
		g.timer.Reset(left)
	}
}

func (g *Guard) reset() {
	if g.timer != nil {
		g.timer.Reset(g.left())
	}
}

// left is the time to the end of the stream if nothing is heard until then.
func (g *Guard) left() time.Duration {
	left := time.Duration(g.last.Load()+g.silence.Load()) - time.Since(g.began)
	if g.life > 0 {
		left = min(left, g.life-g.Lived())
	}
	return left
}

// End ends the request for a reason.
func (g *Guard) End(cause error) { g.cancel(cause) }

// Stop ends the request, and the guard.
func (g *Guard) Stop() {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.cancel(nil)
}
