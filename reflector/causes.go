package reflector

import (
	"errors"
	"fmt"
	"iter"
)

// Causes implements [github.com/tributary-go/tributary/metrics.Explainer].
func (r *Reflector[T]) Causes(name string) iter.Seq2[string, error] { return r.Status().Causes(name) }

// Causes yields Err, if there is one, and what the verdict adds to it. A copy that is only not
// synced yet needs no cause; one whose probes fail is going to be stale.
func (s Status) Causes(name string) iter.Seq2[string, error] {
	var all []error
	if s.Err != nil {
		all = append(all, s.Err)
	}
	switch v := s.Verdict(0); {
	case v.Err != nil && v.State() != StateSyncing && (s.Err == nil || !errors.Is(v.Err, s.Err)):
		all = append(all, v.Err)
	case s.Err == nil && s.ProbeErr != nil:
		all = append(all, fmt.Errorf("the last probe: %w", s.ProbeErr))
	}
	return func(yield func(string, error) bool) {
		for _, err := range all {
			if !yield(name, err) {
				return
			}
		}
	}
}
