package informer

import (
	"errors"
	"time"

	"github.com/tributary-go/tributary/reflector"
)

// Status is the health of an informer at one moment.
type Status struct {
	// Status is the health of the copy. Once Run has ended, could not begin, or is bound to end for
	// a panic, Phase is [reflector.Stopped], and Err is the cause.
	reflector.Status
	// Objects is the number of objects held.
	Objects int
	// Handlers has one entry for each handler and each running loop over Events, in the order of
	// their addition.
	Handlers []HandlerStatus
	// Drift is the result of the last successful verification; its At is zero if there was none.
	// DriftErr is the error of the last verification; nil if it succeeded.
	Drift    Drift
	DriftErr error

	ofSet  bool // the set's Run keeps the copy
	nobody bool // of a union without members
}

// Status returns the present health of the copy and of its handlers. It does not block.
func (i *shared[T]) Status() Status {
	s := i.health()
	s.Objects = i.Snapshot().Len()
	i.mu.Lock()
	defer i.mu.Unlock()
	s.Drift, s.DriftErr = i.drift, i.driftErr
	s.Drift.Healed = s.Drift.Count > 0 && i.relistedLocked()
	for _, h := range i.handlers {
		s.Handlers = append(s.Handlers, h.status())
	}
	return s
}

// health is the status of the copy. The end of Run shows as soon as it is known: the copier may not
// have heard of it, and a handler that blocks holds up the return of Run.
func (i *shared[T]) health() Status {
	s := Status{Status: i.copier.Status(), ofSet: i.options.ofSet}
	if u, ok := i.copier.(interface{ isEmpty() bool }); ok {
		s.nobody = u.isEmpty()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.phase == idle:
		s.Status = reflector.Status{Phase: reflector.Idle, Class: reflector.OK}
	case i.failure != nil:
		s.Status = s.Status.Ended(i.failure, i.failedAt)
	case i.phase == ended:
		s.Status = s.Status.Ended(nil, time.Time{})
	}
	return s
}

// Ready is the error of the copy's verdict: nil if the copy is right, and was proven within
// maxStaleness; see [reflector.Status.Verdict]. A union is right if it has members and each that is
// not optional is right. Ready does not block. [reflector.ReadyHandler] accepts an informer.
func (i *shared[T]) Ready(maxStaleness time.Duration) error {
	return i.health().Verdict(maxStaleness).Err
}

// Verdict judges the copy as [reflector.Status.Verdict] does. Of a set's copy it says that Run of
// the set has not been called.
func (s Status) Verdict(maxStaleness time.Duration) reflector.Verdict {
	v := s.Status.Verdict(maxStaleness)
	if s.nobody && v.Class == reflector.OK {
		v = reflector.Verdict{Class: reflector.NotSynced, Err: errNoMembers}
	}
	if s.ofSet && v.Class == reflector.NotRun {
		v.Err = errSetNotRun
	}
	return v
}

var errNoMembers = errors.New("the union has no members: add those that the program needs")

var errSetNotRun = errors.New("Run of the set has not been called")
