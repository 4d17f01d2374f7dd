package access

import (
	"crypto/tls"
	"errors"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/tributary-go/tributary/sources/health"
)

// Keeper holds the report of one who looks at things in rounds, and logs what changes from one to the next. It is safe for
// concurrent use.
type Keeper struct {
	mu     sync.Mutex // guards report
	report health.Report
}

// Read is the report now.
func (k *Keeper) Read() health.Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.report
	r.Problems = slices.Clone(r.Problems)
	return r
}

// StaleAfter sets the field of that name.
func (k *Keeper) StaleAfter(d time.Duration) { k.edit(func(r *health.Report) { r.StaleAfter = d }) }

// Mode sets the field of that name.
func (k *Keeper) Mode(mode string) { k.edit(func(r *health.Report) { r.Mode = mode }) }

// Skipped sets the field of that name.
func (k *Keeper) Skipped(n int) { k.edit(func(r *health.Report) { r.Skipped = n }) }

func (k *Keeper) edit(edit func(*health.Report)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	edit(&k.report)
}

// Round is how one look went.
type Round struct {
	Problems []error // all that is wrong now
	Contact  bool    // what is read could be
	Complete bool    // nothing that is declared is missing, in spite of the problems
}

// Note notes a round. A problem is counted and logged when it is new, and once more when it is gone, not in every round.
func (k *Keeper) Note(log logr.Logger, round Round) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if round.Contact {
		k.report.LastContact = time.Now()
	}
	for _, p := range round.Problems {
		if !contains(k.report.Problems, p) {
			k.report.Errors++
			tell(log, p)
		}
	}
	for _, p := range k.report.Problems {
		if !contains(round.Problems, p) {
			log.Info("Problem is gone", "problem", p.Error())
		}
	}
	k.report.Problems, k.report.Complete = round.Problems, round.Complete
}

// Hand notes a round and calls hand, which hands over what the round found: the round first where something may be missing
// in that, and last where nothing is. So the report never promises more of what was handed over than is true.
func (k *Keeper) Hand(log logr.Logger, round Round, hand func()) {
	whole := round.Contact && (len(round.Problems) == 0 || round.Complete)
	if !whole {
		k.Note(log, round)
	}
	hand()
	if whole {
		k.Note(log, round)
	}
}

// tell logs a new problem: as an error, unless the network or the server may mend it by itself.
func tell(log logr.Logger, problem error) {
	var request *url.Error
	var untrusted *tls.CertificateVerificationError
	if errors.As(problem, &request) && !errors.As(problem, &untrusted) {
		log.Info("Problem", "problem", problem.Error())
		return
	}
	log.Error(problem, "Problem")
}

func contains(list []error, err error) bool {
	return slices.ContainsFunc(list, func(e error) bool { return errors.Is(e, err) || e.Error() == err.Error() })
}
