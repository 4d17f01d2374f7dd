package listwatch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/client-go/util/flowcontrol"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/internal/sending"
)

// limiterOf is the limiter that a request obeys; nil for none. client-go limits its LISTs and none
// of its watches: a watch costs the server one request in minutes, and a client that waits to watch
// shows an old state.
func limiterOf(limiter flowcontrol.RateLimiter, watch bool) flowcontrol.RateLimiter {
	if watch || null.Is(limiter) {
		return nil
	}
	return toldLimiter{limiter}
}

// toldLimiter tells the reader of a request when it waits.
type toldLimiter struct{ flowcontrol.RateLimiter }

// yieldPause is the mean time between the attempts of a request that yields. It takes no place in
// the limiter's queue: the program's own requests would wait behind it.
const yieldPause = time.Second

// Wait implements [flowcontrol.RateLimiter].
func (l toldLimiter) Wait(ctx context.Context) (err error) {
	since := time.Now()
	if l.TryAccept() {
		return ctx.Err()
	}
	defer sending.Begin(ctx, sending.Wait{For: sending.Limiter, Since: since, QPS: l.QPS()})()
	if sending.Yields(ctx) {
		for err == nil && !l.TryAccept() {
			pace.Sleep(ctx, yieldPause/2+rand.N(yieldPause))
			err = ctx.Err()
		}
	} else {
		err = l.RateLimiter.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("the request waited %s for its turn (rest.Config.QPS is %v): %w",
			time.Since(since).Round(time.Millisecond), l.QPS(), err)
	}
	return nil
}
