package loop

import (
	"errors"
	"fmt"
	"time"

	"github.com/tributary-go/tributary/metrics"
)

// Counts are the numbers of a loop at one moment.
type Counts struct {
	// Urgent are the keys with a change that wait, and Patient those of initial lists and full
	// passes. Those that wait for their back-off, or for After, are in neither. The oldest key of
	// each has waited for OldestUrgent and OldestPatient.
	Urgent, Patient             int
	OldestUrgent, OldestPatient time.Duration
	// Running are the calls under way, and Longest is the time since the first of them began.
	Running int
	Longest time.Duration
	// Done, Again and Failed count the calls that have returned nil, After, or another error.
	// Panicked counts those of Failed that did not return.
	Done, Again, Failed, Panicked uint64
	// Failing is the number of keys that failed at their last call. Err is the last such error,
	// with its key. It is nil if no key fails.
	Failing int
	Err     error
}

var table = metrics.NewTable([]string{"controller"},
	metrics.Gauge("tributary_controller_running", "Calls under way.", func(n Counts) int { return n.Running }),
	metrics.Gauge("tributary_controller_longest_call_seconds", "How long the longest of the calls under way has run.", func(n Counts) time.Duration { return n.Longest }),
	metrics.Gauge("tributary_controller_failing_keys", "Keys that failed at their last call.", func(n Counts) int { return n.Failing }),
	metrics.By("lane", func(n Counts) map[string]depth {
		return map[string]depth{"urgent": {n.Urgent, n.OldestUrgent}, "patient": {n.Patient, n.OldestPatient}}
	},
		metrics.Gauge("tributary_controller_keys", "Keys that wait.", func(d depth) int { return d.keys }),
		metrics.Gauge("tributary_controller_oldest_seconds", "How long the oldest of them has waited.", func(d depth) time.Duration { return d.oldest })),
	metrics.By("result", func(n Counts) map[string]uint64 {
		return map[string]uint64{"done": n.Done, "again": n.Again, "failed": n.Failed - n.Panicked, "panicked": n.Panicked}
	}, metrics.Counter("tributary_controller_calls_total", "Calls of Reconcile.", metrics.Itself[uint64])),
)

// Samples yields the numbers as metrics of a controller.
func (n Counts) Samples(name string) []metrics.Sample { return table(n, name) }

// result is how a call went.
type result uint8

const (
	done result = iota
	again
	failed
	terminal
	panicked
)

func resultOf(err error) result {
	var after After
	var end *Terminal
	var crash *panicError
	switch {
	case err == nil:
		return done
	case errors.As(err, &crash):
		return panicked
	case errors.As(err, &after):
		return again
	case errors.As(err, &end):
		return terminal
	}
	return failed
}

// countLocked takes in the result of a call.
func (l *Loop[K]) countLocked(key K, r result, err error) {
	n := &l.counts
	delete(l.failed, key)
	switch r {
	case done:
		n.Done++
	case again:
		n.Again++
	default:
		if n.Failed++; r == panicked {
			n.Panicked++
		}
		l.failed[key] = true
		if n.Err = fmt.Errorf("%v: %w", key, err); l.fails.IsZero() {
			l.fails = time.Now()
		}
		return
	}
	l.fails = time.Time{}
}

// Counts returns the present numbers.
func (l *Loop[K]) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.counts
	if n.Failing = len(l.failed); n.Failing == 0 {
		n.Err = nil
	}
	n.Running = len(l.calls)
	_, n.Longest = l.longestLocked()
	all := l.lanes.depth()
	n.Patient, n.Urgent = all[patient].keys, all[urgent].keys
	n.OldestPatient, n.OldestUrgent = all[patient].oldest, all[urgent].oldest
	return n
}

// longestLocked is the call that has been under way for longest.
func (l *Loop[K]) longestLocked() (key K, took time.Duration) {
	for k, began := range l.calls {
		if t := time.Since(began); t >= took {
			key, took = k, t
		}
	}
	return key, took
}

// Stuck says what has gone on for longer than a bound: a call; the wait of a key with a change; or
// failures, of several keys and without a call that did not fail. One key that fails is its own
// affair, if the loop has done others.
func (l *Loop[K]) Stuck(bound time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if key, took := l.longestLocked(); took > bound {
		return fmt.Errorf("the call for %v has not returned for %s", key, took.Round(time.Second))
	}
	if oldest := l.lanes.depth()[urgent].oldest; oldest > bound {
		return fmt.Errorf("a key with a change has waited for %s: %d calls are under way", oldest.Round(time.Second), len(l.calls))
	}
	alone := len(l.failed) < 2 && l.counts.Done+l.counts.Again > 0
	if since := time.Since(l.fails); !l.fails.IsZero() && since > bound && !alone {
		return fmt.Errorf("every call has failed for %s, of %d keys: %w", since.Round(time.Second), len(l.failed), l.counts.Err)
	}
	return nil
}
