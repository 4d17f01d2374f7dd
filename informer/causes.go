package informer

import "iter"

// Causes implements [github.com/tributary-go/tributary/metrics.Explainer].
func (i *shared[T]) Causes(name string) iter.Seq2[string, error] { return i.Status().Causes(name) }

// Causes implements [github.com/tributary-go/tributary/metrics.Explainer] for all leased copies,
// under their own names.
func (s *Set) Causes(string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, c := range s.Status() {
			for name, cause := range c.Status.Causes(c.Name) {
				if !yield(name, cause) {
					return
				}
			}
		}
	}
}
