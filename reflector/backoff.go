package reflector

import "time"

// backoff counts failures and says how long to wait after one. It has no clock; random gives numbers in [0, 1).
type backoff struct {
	initial, limit time.Duration
	random         func() float64
	failures       int
}

// Limits of the delay by what happened. A server that is not there costs nothing to ask, and agents want to be back
// within moments of its return; one that answers with an error may be overloaded. What an operator must change is
// asked for seldom from the start.
const (
	unreachableLimit = 2 * time.Second
	slowFloor        = 5 * time.Second
)

// next counts one failure and returns the delay before the next attempt: the initial delay doubled per failure up
// to the limit, then full jitter (anything between nothing and that), so that clients that failed together do not
// return together.
func (b *backoff) next(class Class) time.Duration {
	limit, floor := b.limit, time.Duration(0)
	switch class {
	case Unreachable:
		limit = min(limit, unreachableLimit)
	case Forbidden, NotFound:
		floor = min(limit, slowFloor)
	}
	delay := b.initial
	for range b.failures {
		if delay *= 2; delay >= limit {
			break
		}
	}
	b.failures++
	delay = min(delay, limit)
	return floor + time.Duration(b.random()*float64(max(delay-floor, b.initial)))
}
