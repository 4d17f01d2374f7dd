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

// Keeper holds the report of a reader that looks in rounds, and logs the changes between rounds. It
// is safe for concurrent use.
type Keeper struct {
	mu     sync.Mutex // guards report
	report health.Report
}

// Read returns the present report.
func (k *Keeper) Read() health.Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.report
	r.Problems, r.Warnings = slices.Clone(r.Problems), slices.Clone(r.Warnings)
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

// Round is the result of one look.
type Round struct {
	Problems []error // all the present ones
	Warnings []error // the same
	Contact  bool    // the file or URL could be read
	Complete bool    // nothing is missing, despite the problems
	Doubt    error   // why the contact proves nothing; also a problem
}

// Note notes a round. A problem is counted and logged when it is new, and logged once more when it
// is gone. A warning is logged when it is new.
func (k *Keeper) Note(log logr.Logger, round Round) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if round.Contact {
		k.report.LastContact = time.Now()
	}
	if round.Contact && round.Doubt == nil {
		k.report.ProvenAt = k.report.LastContact
	}
	if round.Doubt != nil {
		round.Problems = append(slices.Clip(round.Problems), round.Doubt)
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
	for _, w := range round.Warnings {
		if !contains(k.report.Warnings, w) {
			log.Info("Warning", "warning", w.Error())
		}
	}
	k.report.Problems, k.report.Warnings, k.report.Doubt = round.Problems, round.Warnings, round.Doubt
	k.report.Complete = round.Complete && round.Doubt == nil
}

// Hand notes a round and calls hand, which sets the state of the round. If the state may be
// incomplete, the round is noted first, and else last. So the report never promises more than the
// state has.
func (k *Keeper) Hand(log logr.Logger, round Round, hand func()) {
	whole := round.Contact && round.Doubt == nil && (len(round.Problems) == 0 || round.Complete)
	if !whole {
		k.Note(log, round)
	}
	hand()
	if whole {
		k.Note(log, round)
	}
}

// passing are the classes of marked problems that go by themselves when a server is up again.
var passing = []string{"disconnected", "not_ready", "silent", "unreachable"}

// tell logs a new problem: as an error, unless the network or the server may mend it by itself.
func tell(log logr.Logger, problem error) {
	var request *url.Error
	var untrusted *tls.CertificateVerificationError
	passes := slices.Contains(passing, ClassOf(problem))
	if passes || errors.As(problem, &request) && !errors.As(problem, &untrusted) {
		log.Info("Problem", "problem", problem.Error())
		return
	}
	log.Error(problem, "Problem")
}

func contains(list []error, err error) bool {
	return slices.ContainsFunc(list, func(e error) bool { return errors.Is(e, err) || e.Error() == err.Error() })
}
