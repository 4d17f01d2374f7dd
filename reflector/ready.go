package reflector

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tributary-go/tributary/internal/null"
)

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
