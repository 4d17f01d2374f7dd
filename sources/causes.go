package sources

import "iter"

// Causes implements [github.com/tributary-go/tributary/metrics.Explainer]: the problems of all
// sources, under the names of their reflectors in Samples.
func (s *Sources) Causes(name string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, status := range s.Status() {
			for _, problem := range status.Problems {
				if !yield(name+"/"+status.Source, problem) {
					return
				}
			}
		}
	}
}
