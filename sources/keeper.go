package sources

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// keeper holds the report of a source that looks at things in rounds, and logs what changes from one to the next.
type keeper struct {
	mu     sync.Mutex // guards report
	report Report
}

func (k *keeper) read() Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.report
	r.Problems = slices.Clone(r.Problems)
	return r
}

func (k *keeper) staleAfter(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.report.StaleAfter = d
}

func (k *keeper) mode(mode string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.report.Mode = mode
}

func (k *keeper) skipped(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.report.Skipped = n
}

// round notes how one look went: problems are all that is wrong now. A problem is counted and logged when it is new, and
// once more when it is gone, not in every round.
func (k *keeper) round(log logr.Logger, problems []error, contact bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if contact {
		k.report.LastContact = time.Now()
	}
	for _, p := range problems {
		if !contains(k.report.Problems, p) {
			k.report.Errors++
			log.Info("Problem", "error", p.Error())
		}
	}
	for _, p := range k.report.Problems {
		if !contains(problems, p) {
			log.Info("Problem is gone", "error", p.Error())
		}
	}
	k.report.Problems = problems
}

func contains(list []error, err error) bool {
	return slices.ContainsFunc(list, func(e error) bool { return errors.Is(e, err) || e.Error() == err.Error() })
}
