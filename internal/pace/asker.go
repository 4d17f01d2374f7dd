package pace

import (
	"math/rand/v2"
	"time"
)

// Answer is what a failed request means for the next one.
type Answer uint8

const (
	// Failed: the server was there, and did not do what it was asked for.
	Failed Answer = iota
	// Absent: no server answered.
	Absent
	// Refused: a person must mend it, unless the server has just started.
	Refused
)

// Asker decides when a server is asked again after a failure, by its kind and by what the server
// asks for. It has no clock, and is not safe for concurrent use.
type Asker struct {
	Initial, Limit time.Duration
	Random         func() float64 // in [0, 1); nil: of the process
	// Optional: the program goes on without the answer, so that a refusal is left alone for
	// [Forbidden].
	Optional bool

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
	RefusalPatience = 8
	ToldSpread      = 5 * time.Second
)

// Next counts one failure and returns the delay before the next attempt: the initial delay doubled
// per failure up to the limit, then full jitter (anything between nothing and that), so that
// clients that failed together do not return together.
//
// A wait that the server asked for is kept in full, up to its limit: the server knows best when to
// come back. Jitter comes on top, since many clients are told the same, but at most as long again,
// or ToldSpread if that is longer. Earlier failures have no part in it: a server that starts
// refuses connections, then permission, and then says "in 1 s".
func (a *Asker) Next(answer Answer, told time.Duration) time.Duration {
	if told = min(told, ToldLimit); told == 0 {
		a.told = 0
	}
	least, spread := a.after(answer)
	if told > 0 {
		a.told++
		least, spread = max(least, told), min(a.Doubled(a.told-1), max(told, ToldSpread))
	}
	return least + a.Within(spread)
}

// after counts one failure, and returns the delay in two parts: the least wait, and the range of
// the jitter on top.
func (a *Asker) after(answer Answer) (least, spread time.Duration) {
	// A server that starts is not there, then refuses, then may fail: none of them adds to the
	// weight of the next.
	if answer == Absent {
		a.absences++
		a.refusals, a.patience = 0, RefusalPatience
		return 0, min(a.Doubled(a.absences-1), AbsentLimit)
	}
	a.absences = 0
	if answer != Refused {
		a.refusals = 0
		a.failures++
		return 0, a.Doubled(a.failures - 1)
	}
	if a.refusals++; a.patience > 0 {
		a.patience--
		return 0, min(a.Doubled(a.refusals-1), AbsentLimit)
	}
	if a.Optional {
		return Forbidden, 0
	}
	least = min(a.Limit, refusedAtLeast)
	return least, min(a.Limit, refusedWithin) - least
}

// Resume counts the end of a watch that lived, and returns the short delay of the first retry; 0
// when something has failed since there was life, so that a connection that is cut again and again
// is not made in a tight loop.
func (a *Asker) Resume() time.Duration {
	if a.failures > 0 {
		return 0
	}
	a.failures++
	return min(a.Initial, 1+a.Within(ResumeSpread))
}

// Alive takes in a sign of life. flaps counts the last lists in a row that no live watch followed:
// those are no life.
func (a *Asker) Alive(flaps int) {
	a.failures = flaps
	if flaps == 0 {
		a.absences, a.refusals, a.patience, a.told = 0, 0, 0, 0
	}
}

// Doubled is the initial delay doubled n times, up to the limit.
func (a *Asker) Doubled(n int) time.Duration { return Doubled(a.Initial, a.Limit, n) }

// Within is a random part of d.
func (a *Asker) Within(d time.Duration) time.Duration {
	if a.Random == nil {
		return Jitter(d)
	}
	return time.Duration(a.Random() * float64(d))
}

// Patient reports whether the last refusals are taken for those of a server that starts.
func (a *Asker) Patient() bool { return a.patience > 0 }

// Jitter is a random part of d.
func Jitter(d time.Duration) time.Duration { return time.Duration(rand.Float64() * float64(d)) }
