package reflector

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tributary-go/tributary/internal/age"
	"github.com/tributary-go/tributary/internal/null"
)

// The classes of a verdict that are not those of a request.
const (
	// NotRun is a copy that nothing keeps yet: Run has not been called.
	NotRun Class = "not_run"
	// Ended is a copy that nothing keeps any more: Run has ended.
	Ended Class = "ended"
	// NotSynced is a copy without a whole state of the server.
	NotSynced Class = "not_synced"
	// MayBeOld is a state of unknown age: no consistent answer has proven it yet.
	MayBeOld Class = "may_be_old"
	// Stale is a copy whose last proof is older than the reader permits.
	Stale Class = "stale"
	// History is a copy that the server contradicts: an object of a version that the copy covers is
	// not the object held. The address leads to another cluster, or to one that was restored.
	History Class = "another_history"
	// Stuck is a controller of which a call hangs, a change waits, or all calls fail, for too long.
	Stuck Class = "stuck"
	// Drift is a copy with other content than the server's under the same versions.
	Drift Class = "drift"
)

// Verdict is the worth of a copy at one moment. Each part of this module that says something about
// a copy says its verdict: Ready, the readiness handler, SafeToPrune, metrics, log and status page.
type Verdict struct {
	// Class is [OK] if the copy is right, else the reason why it is not.
	Class Class
	// Err is nil if the copy is right. Else it says why not, and wraps the cause.
	Err error
}

// State is what a verdict means for a reader, in one word.
type State string

// The states, from the worst on.
const (
	// StateWrong: the content differs from the server's, or too much of it cannot be used.
	StateWrong State = "wrong"
	// StateStopped: nothing keeps the cache. Run has not been called, or has ended.
	StateStopped State = "stopped"
	// StateStale: the newest proof of the cache is too old.
	StateStale State = "stale"
	// StateFailing: something is wrong now. The cache keeps its last good state.
	StateFailing State = "failing"
	// StateRestored: the state is a checkpoint's, or was read from a cache, and is not proven yet.
	StateRestored State = "restored"
	// StateSyncing: the first state is not complete.
	StateSyncing State = "syncing"
	// StateSynced: the cache is healthy.
	StateSynced State = "synced"
)

// State is the meaning of the verdict's class. Whoever shows or acts on a verdict asks it, and
// lists no classes: a class that has no case here is failing.
func (v Verdict) State() State {
	switch v.Class {
	case OK:
		return StateSynced
	case NotSynced:
		return StateSyncing
	case MayBeOld:
		return StateRestored
	case Stale:
		return StateStale
	case NotRun, Ended:
		return StateStopped
	case History, Drift, Undecodable:
		return StateWrong
	}
	return StateFailing
}

// unusableShare: of a list, one object in so many may be unusable before the copy is not right.
const unusableShare = 20

var (
	errNotRun    = errors.New("Run has not been called")
	errNotSynced = errors.New("not synced yet")
	errMayBeOld  = errors.New("the state is of unknown age: no consistent answer of the server has proven it yet")
)

// Verdict judges the copy as it is now. It is right if Run keeps it, a whole state has been read,
// nothing contradicts it, at most one object in twenty is unusable, and it is proven to have been
// the server's state at a moment within maxStaleness. Zero asks for a proof of any age.
// The age of a proof counts the time for which the machine was suspended.
func (s Status) Verdict(maxStaleness time.Duration) Verdict {
	return s.verdict(time.Now(), maxStaleness)
}

func (s Status) verdict(now time.Time, maxStaleness time.Duration) Verdict {
	old := age.At(now, s.ProvenAt)
	if v := s.ofParts(now, maxStaleness); v.Class != OK {
		return v
	}
	switch {
	case s.Phase == Idle:
		return Verdict{NotRun, errNotRun}
	case s.Phase == Stopped:
		return s.not(Ended, errEnded)
	case !s.Synced:
		return s.not(NotSynced, errNotSynced)
	case s.Contradiction != nil:
		class := Drift
		if Classify(s.Contradiction) == History {
			class = History
		}
		if errors.Is(s.Err, s.Contradiction) {
			s.Err, s.ProbeErr = nil, nil // to name it once
		}
		return s.not(class, s.Contradiction)
	case s.Unusable*unusableShare > max(s.Listed, 1):
		return s.not(Undecodable, fmt.Errorf("%d objects cannot be used, of %d in the newest list", s.Unusable, s.Listed))
	case s.ProvenAt.IsZero():
		return s.not(MayBeOld, errMayBeOld)
	case maxStaleness > 0 && old > maxStaleness:
		return s.not(Stale, fmt.Errorf("proven for %s, which is %s ago; allowed are %s",
			s.ProvenAt.Format(time.TimeOnly), old.Round(time.Millisecond), maxStaleness))
	}
	return Verdict{Class: OK}
}

// ofParts is the verdict of a sum: that of the first part that is not right, with the reasons of
// all of them.
func (s Status) ofParts(now time.Time, maxStaleness time.Duration) Verdict {
	sum := Verdict{Class: OK}
	for _, p := range s.parts {
		if v := p.status.verdict(now, maxStaleness); v.Class != OK {
			if sum.Class == OK {
				sum.Class = v.Class
			}
			sum.Err = errors.Join(sum.Err, fmt.Errorf("member %q: %w", p.name, v.Err))
		}
	}
	return sum
}

// contradicts reports whether a class says that the copy is wrong, until a list has replaced it.
func contradicts(class Class) bool { return class == History || class == Drift }

// not is a verdict with the present failure as its cause, else with the failure of the last probe.
func (s Status) not(class Class, why error) Verdict {
	switch {
	case s.Err != nil:
		why = fmt.Errorf("%w (%s: %w)", why, s.Class, s.Err)
	case s.ProbeErr != nil:
		why = fmt.Errorf("%w (the last probe: %w)", why, s.ProbeErr)
	}
	return Verdict{class, why}
}

// Readier is a copy that can be asked whether it is good enough to act on; a [Reflector] of any
// type is one.
type Readier interface {
	// Ready returns nil if the copy is right, and was proven within maxStaleness. Else the error
	// says why not.
	Ready(maxStaleness time.Duration) error
}

// Ready is the error of the copy's [Verdict]: nil if the copy is right, and proven to have been the
// server's state at a moment within maxStaleness. The proof of a healthy copy is up to two minutes
// old, so that a bound of less than three needs [WithProof]. Ready does not block.
func (r *Reflector[T]) Ready(maxStaleness time.Duration) error {
	return r.Status().Verdict(maxStaleness).Err
}

var errNoCopies = errors.New("nothing is ready: give ReadyHandler the copies that the program needs")

// ReadyHandler answers a readiness probe for any number of copies: 200 when all are ready, 503 and
// a line for each that is not otherwise. Without copies nothing is ready: 503. It does not block.
func ReadyHandler(maxStaleness time.Duration, copies ...Readier) http.Handler {
	for i, c := range copies {
		if null.Is(c) {
			panic(fmt.Sprintf("reflector: ReadyHandler: copy %d is nil (%T): make it before the handler", i+1, c))
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var all []error
		for i, c := range copies {
			if err := c.Ready(maxStaleness); err != nil {
				all = append(all, fmt.Errorf("copy %d: %w", i+1, err))
			}
		}
		if len(copies) == 0 {
			all = append(all, errNoCopies)
		}
		if err := errors.Join(all...); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}
