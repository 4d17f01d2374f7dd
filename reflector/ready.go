package reflector

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Readier is a copy that can be asked whether it is good enough to act on; a [Reflector] of any
// type is one.
type Readier interface {
	// Ready returns nil if the copy is synced and was heard of within maxStaleness, else an error
	// that says why not.
	Ready(maxStaleness time.Duration) error
}

var (
	errNotSynced = errors.New("not synced yet")
	errMayBeOld  = errors.New("the state was read from the server's cache, and may be older than the truth")
)

// Ready returns nil if the store holds a whole state of the server and the server was heard from
// within maxStaleness; else an error that says why not, with its cause. A server sends a bookmark
// about once a minute, and its first one up to two minutes late, so a bound of less than three is
// crossed by healthy copies too. With [WithProgressWithin] the resource version must have moved
// within that time, too. It does not block.
func (r *Reflector[T]) Ready(maxStaleness time.Duration) error {
	s := r.Status()
	var wrong error
	silence, standstill := time.Since(s.LastContact), time.Since(s.LastProgress)
	switch within := r.options.progress; {
	case !s.Synced:
		wrong = errNotSynced
	case s.MayBeOld:
		wrong = errMayBeOld
	case silence > maxStaleness:
		wrong = fmt.Errorf("nothing heard for %s, allowed are %s", silence.Round(time.Millisecond), maxStaleness)
	case within > 0 && standstill > within:
		wrong = fmt.Errorf("at version %s for %s, allowed are %s", s.ResourceVersion, standstill.Round(time.Millisecond), within)
	default:
		return nil
	}
	if s.Err != nil {
		return fmt.Errorf("%w (%s: %w)", wrong, s.Class, s.Err)
	}
	return wrong
}

// ReadyHandler answers a readiness probe for any number of copies: 200 when all are ready, 503 and
// a line for each that is not otherwise. It does not block.
func ReadyHandler(maxStaleness time.Duration, copies ...Readier) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var all []error
		for i, c := range copies {
			if err := c.Ready(maxStaleness); err != nil {
				all = append(all, fmt.Errorf("copy %d: %w", i+1, err))
			}
		}
		if err := errors.Join(all...); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}
