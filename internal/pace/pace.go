// Package pace has the waits before requests that a reflector and a set of references share.
package pace

import (
	"context"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// Initial and Limit are the field's habit for a backoff that doubles.
	Initial = 800 * time.Millisecond
	Limit   = 30 * time.Second
	// AbsentLimit is the limit for a server that is not there: to ask it costs nothing.
	AbsentLimit = 2 * time.Second
	// ToldLimit bounds the wait that a server may ask for. A client that asks once in five minutes
	// is no load. A client that is blind for an hour, by the mistake of a gateway, is an outage.
	ToldLimit = 5 * time.Minute
	// ResumeSpread is the jitter of the first retry after a watch that lived. If the connections of
	// 500 clients are cut together, the clients arrive at 10 a millisecond, and each has as long
	// again to connect before 100 ms are over.
	ResumeSpread = 50 * time.Millisecond
	// Forbidden is how long a request that the server does not permit is left alone, where the
	// program goes on without its answer: a person has to mend that.
	Forbidden = 10 * time.Minute
)

// Doubled is the initial delay doubled n times, up to the limit.
func Doubled(initial, limit time.Duration, n int) time.Duration {
	delay := initial
	for range n {
		if delay *= 2; delay >= limit {
			return limit
		}
	}
	return min(delay, limit)
}

// Told is the wait that the server asked for, within its bound.
func Told(err error) time.Duration { return min(RetryAfter(err), ToldLimit) }

// RetryAfter is the wait that the server asked for; zero if it asked for none.
func RetryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(min(max(0, seconds), math.MaxInt32)) * time.Second
}

// Sleep reports whether the time passed before ctx ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
