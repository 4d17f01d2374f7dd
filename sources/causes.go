package sources

import (
	"iter"

	"github.com/tributary-go/tributary/reflector"
)

// Causes implements [github.com/tributary-go/tributary/metrics.Explainer]: the problems of all
// sources, under the names of their reflectors in Samples. The cause of a source without problems
// is its verdict, once it has been read.
func (s *Sources) Causes(name string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, status := range s.Status() {
			problems := status.Problems
			if v := status.Verdict(status.StaleAfter); len(problems) == 0 && v.Err != nil && v.State() != reflector.StateSyncing {
				problems = []error{v.Err}
			}
			for _, problem := range problems {
				if !yield(name+"/"+status.Source, problem) {
					return
				}
			}
		}
	}
}
