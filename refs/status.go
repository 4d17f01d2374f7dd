package refs

import (
	"fmt"
	"time"

	"github.com/tributary-go/tributary/reflector"
)

// Status is the health of all names at one moment.
type Status struct {
	// Names have owners.
	Names, Owners int
	// Current names have a state that a watch follows, or that never changes. Idle names are not
	// followed: their last Get was long ago. All others wait for their first state, or the next.
	Current, Idle int
	// Watches of names, and of namespaces ([WithNamespaceWatch]), are open or being opened.
	Watches, Namespaces int
	// Failing counts names by the class of their last attempt.
	Failing map[reflector.Class]int
	// Server is the class of the failure that keeps all names back, such as
	// [reflector.Unreachable]; [reflector.OK] if the server answers.
	Server reflector.Class
}

// String is one line for logs and people.
func (s Status) String() string {
	line := fmt.Sprintf("%d names of %d owners, %d current, %d idle, %d watches", s.Names, s.Owners, s.Current, s.Idle, s.Watches+s.Namespaces)
	if len(s.Failing) > 0 {
		line += fmt.Sprintf(", failing %v", s.Failing)
	}
	if s.Server != reflector.OK {
		line += ", server " + string(s.Server)
	}
	return line
}

// Status is the health of all names now. It looks at each name.
func (r *Refs[T]) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Status{Names: len(r.names), Owners: len(r.owners), Failing: map[reflector.Class]int{}, Server: reflector.OK}
	for _, e := range r.names {
		switch {
		case e.current():
			s.Current++
		case e.phase == idle:
			s.Idle++
		}
		if e.run != nil {
			s.Watches++
		}
		if e.failure != nil {
			s.Failing[e.failure.class]++
		}
	}
	for _, space := range r.spaces {
		if space.share != nil {
			s.Namespaces++
		}
	}
	if f := r.gate.trouble(); f != nil {
		s.Server = f.class
	}
	return s
}

// Ready returns nil while Run runs, if each name has a state that is current, or that never changes
// or is idle, and the server was heard from within maxStaleness about each. Otherwise the error
// names one of the others, and the cause. A server sends a bookmark about once a minute. It
// implements [reflector.Readier].
func (r *Refs[T]) Ready(maxStaleness time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.runsLocked(); err != nil {
		return fmt.Errorf("refs: %w", err)
	}
	now := time.Now()
	for _, e := range r.names {
		silence := now.Sub(e.lastContact())
		switch {
		case e.phase == kept, e.phase == idle && e.known:
		case !e.current():
			return r.whyNot(e, errNotCurrent)
		case silence > maxStaleness:
			return r.whyNot(e, fmt.Errorf("nothing heard for %s, allowed are %s", silence.Round(time.Millisecond), maxStaleness))
		}
	}
	return nil
}

// trouble is why the state of a name may not be current: the last failure, of the name or of the
// server; nil if there is none.
func (r *Refs[T]) trouble(e *entry[T]) *failure {
	f := r.gate.trouble()
	if f == nil || e.failure != nil && e.failure.at.After(f.at) {
		return e.failure
	}
	return f
}

// whyNot is an error about a name, with the failure behind it if there is one.
func (r *Refs[T]) whyNot(e *entry[T], err error) error {
	result := &Error{Name: e.name, Class: reflector.OK, Since: e.lastContact(), Err: err}
	if idle := r.runsLocked(); idle != nil {
		result.Err = fmt.Errorf("%w: %w", idle, err)
	} else if f := r.trouble(e); f != nil {
		result.Class, result.Err = f.class, fmt.Errorf("%w (%w)", f.err, err)
	}
	return result
}
