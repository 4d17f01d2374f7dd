package reflector

import "iter"

// Causes implements [github.com/tributary-go/tributary/metrics.Explainer].
func (r *Reflector[T]) Causes(name string) iter.Seq2[string, error] { return r.Status().Causes(name) }

// Causes yields Err, if there is one.
func (s Status) Causes(name string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if s.Err != nil {
			yield(name, s.Err)
		}
	}
}
