package sources

import (
	"sync"
	"time"
)

// maxPending is how many states of a source may wait for the reader before they are merged into the newest. Each costs
// what it differs from the one before. A reader that is this far behind wants to catch up, not to see every step.
const maxPending = 64

// feed is one source on its way to the merge: the states that it has set and that have not been told.
type feed struct {
	source Source
	merge  merger // of the goroutine that delivers
	// merged receives when states were merged, so that a plan made before is given up.
	merged chan struct{}

	mu      sync.Mutex // guards what follows
	pending []state
	seen    bool
	pods    int
	lastSet time.Time
	failed  error // the source has ended with this
}

// push adds a state. It never blocks.
func (f *feed) push(next state) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods, f.lastSet = next.pods.Len(), time.Now()
	if len(f.pending) < maxPending {
		f.pending = append(f.pending, next)
		return
	}
	clear(f.pending)
	f.pending = append(f.pending[:0], next)
	select {
	case f.merged <- struct{}{}:
	default: // it has been said before and not been heard yet
	}
}

// pop takes the oldest state that has not been told.
func (f *feed) pop() (state, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pending) == 0 {
		return state{}, false
	}
	next := f.pending[0]
	f.pending[0] = state{}
	f.pending = f.pending[1:]
	select {
	case <-f.merged: // said before this state was taken: it is news no longer
	default:
	}
	return next, true
}

func (f *feed) told() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = true
}

func (f *feed) wasTold() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

func (f *feed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = err
}

func (f *feed) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

func (f *feed) status() Status {
	report := f.source.Report()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		report.Problems = append(report.Problems[:len(report.Problems):len(report.Problems)], f.failed)
		report.Errors++
	}
	return Status{Source: f.source.Name(), Seen: f.seen, Pods: f.pods, LastSet: f.lastSet, Report: report}
}
