package reflector

import (
	"time"

	"github.com/tributary-go/tributary/internal/pace"
)

// backoff counts failures and says how long to wait after one. It has no clock; random gives
// numbers in [0, 1).
type backoff struct {
	initial, limit time.Duration
	random         func() float64
	// In a row, of a server that was there and did not refuse; zero again once there is life.
	failures int
	absences int // the last ones in a row in which there was no server; not part of failures
	refusals int // the last ones in a row that an operator must mend; not part of failures
	patience int // how many more refusals are taken for those of a server that starts
	told     int // of the failures, the last ones in a row in which the server named a time
}

// Limits of the delay, by the kind of failure. To ask a server that is not there costs nothing, and
// agents want to be back within moments of its return, however long it was away. A server that
// answers with an error may be overloaded.
//
// Refused rights are asked for again at an even pace: the person that grants them sees the copy
// within refusedWithin, and no pace with fewer requests can promise that. Only a server that was
// away gets patience: while it starts, it answers 403 until it has read its roles, and 404 until it
// knows its custom resources.
const (
	refusedAtLeast = 4 * time.Second
	refusedWithin  = 4750 * time.Millisecond // and the time of a request, up to 5 s
	// Refusals after an absence before they are believed: seven seconds on average.
	refusalPatience = 8
	toldSpread      = 5 * time.Second
)

// next counts one failure and returns the delay before the next attempt: the initial delay doubled
// per failure up to the limit, then full jitter (anything between nothing and that), so that
// clients that failed together do not return together.
//
// A wait that the server asked for is kept in full, up to its limit: the server knows best when to
// come back. Jitter comes on top, since many clients are told the same, but at most as long again,
// or toldSpread if that is longer. Earlier failures have no part in it: a server that starts
// refuses connections, then permission, and then says "in 1 s".
func (b *backoff) next(class Class, told time.Duration) time.Duration {
	if told = min(told, pace.ToldLimit); told == 0 {
		b.told = 0
	}
	least, spread := b.after(class)
	if told > 0 {
		b.told++
		least, spread = max(least, told), min(b.doubled(b.told-1), max(told, toldSpread))
	}
	return least + b.within(spread)
}

// after counts one failure, and returns the delay in two parts: the least wait, and the range of
// the jitter on top.
func (b *backoff) after(class Class) (least, spread time.Duration) {
	// A server that starts is not there, then refuses, then may fail: none of them adds to the
	// weight of the next.
	if class == Unreachable {
		b.absences++
		b.refusals, b.patience = 0, refusalPatience
		return 0, min(b.doubled(b.absences-1), pace.AbsentLimit)
	}
	b.absences = 0
	if class != Forbidden && class != NotFound {
		b.refusals = 0
		b.failures++
		return 0, b.doubled(b.failures - 1)
	}
	if b.refusals++; b.patience > 0 {
		b.patience--
		return 0, min(b.doubled(b.refusals-1), pace.AbsentLimit)
	}
	least = min(b.limit, refusedAtLeast)
	return least, min(b.limit, refusedWithin) - least
}

// resume counts the end of a watch that lived, and returns the short delay of the first retry; 0
// when something has failed since there was life, so that a connection that is cut again and again
// is not made in a tight loop.
func (b *backoff) resume() time.Duration {
	if b.failures > 0 {
		return 0
	}
	b.failures++
	return min(b.initial, 1+b.within(pace.ResumeSpread))
}

// alive takes in a sign of life. flaps counts the last lists in a row that no live watch followed:
// those are no life.
func (b *backoff) alive(flaps int) {
	b.failures = flaps
	if flaps == 0 {
		b.absences, b.refusals, b.patience, b.told = 0, 0, 0, 0
	}
}

// doubled is the initial delay doubled n times, up to the limit.
func (b *backoff) doubled(n int) time.Duration { return pace.Doubled(b.initial, b.limit, n) }

// within is a random part of d.
func (b *backoff) within(d time.Duration) time.Duration {
	return time.Duration(b.random() * float64(d))
}
