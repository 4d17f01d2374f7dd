package sources

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/store"
)

const (
	// keepsUp is how long a state may wait before its reader is late. It is longer than a reader in
	// a loop is ever off the processor, and too short for any agent to notice.
	keepsUp = 50 * time.Millisecond
	// maxPending bounds the pending states of a source. Each costs its difference from the one
	// before.
	maxPending = 64
)

// feed is one source on its way to the merge, with the states that are pending for the reader.
type feed struct {
	source Source
	name   string        // of the source, or given by Named
	merge  merger        // of the goroutine that delivers
	ended  chan struct{} // closes when the source has
	timer  *time.Timer   // of an optional one's deadline; Sources.mu guards it
	// merged receives when pending states were coalesced: the current plan is obsolete.
	merged chan struct{}
	// patience is keepsUp. Zero: only the number of states counts.
	patience time.Duration

	mirrors  bool      // the source is a MirrorHolder
	live     bool      // the source is a StatusHolder
	optional bool      // Synced does not wait for it beyond the deadline
	node     nodeState // unasked, or unchecked
	// from the beginning of the run; zero is none, or at once for an optional one
	deadline time.Duration

	// due: pending has a state, or the feed is to be dropped. It is set with mu held and read
	// without, so that the loop of Run passes over idle feeds without a lock.
	due atomic.Bool
	// over: the source's Run has returned.
	over atomic.Bool
	// newest is the state that the source set last.
	newest atomic.Pointer[Pods]
	// read counts the updates that have been read, by place in operations.
	read [len(operations)]atomic.Int64

	mu       sync.Mutex // guards the fields below
	begun    time.Time  // when the source was started
	cancel   context.CancelFunc
	removed  bool // by Remove: the feed goes once everything is told
	pending  []state
	known    Pods // the last state that the reader was told whole
	passed   Pods // the newest state of which the missed pods are counted
	missed   int
	telling  bool      // the reader has only a part of the state that was popped last
	since    time.Time // when the oldest unread state was set; zero: there is none
	seen     bool
	sets     int // states that the source has set
	lastSet  time.Time
	restored bool  // newest is from a checkpoint
	failed   error // the source has ended with this
}

func newFeed(input Input) *feed {
	f := &feed{
		source: input.source, name: cmp.Or(input.name, input.source.Name()), optional: input.optional, deadline: input.deadline, node: input.node,
		ended: make(chan struct{}), merged: make(chan struct{}, 1),
	}
	f.newest.Store(&Pods{})
	_, f.mirrors = input.source.(MirrorHolder)
	_, f.live = input.source.(StatusHolder)
	return f
}

// state is the state that the source set last, told or not.
func (f *feed) state() Pods { return *f.newest.Load() }

// push adds a state for the reader. It never blocks.
func (f *feed) push(next state) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next.at = time.Now()
	f.sets++
	f.lastSet, f.restored = next.at, next.restored
	if len(f.pending) >= maxPending || f.lateLocked() {
		f.mergeLocked(next)
		return
	}
	if f.since.IsZero() {
		f.since = next.at
	}
	f.pending = append(f.pending, next)
	f.due.Store(true)
}

// lateLocked reports whether the reader is overdue.
func (f *feed) lateLocked() bool {
	return f.patience > 0 && !f.since.IsZero() && time.Since(f.since) >= f.patience
}

// late coalesces the pending states of an overdue reader; true means that the current plan is
// obsolete.
func (f *feed) late() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pending) == 0 || !f.lateLocked() {
		return false
	}
	f.mergeLocked(f.pending[len(f.pending)-1])
	return true
}

// mergeLocked replaces the pending states by next. next inherits the oldest unread time, so later
// states of an absent reader are coalesced at once.
func (f *feed) mergeLocked(next state) {
	if f.since.IsZero() {
		f.since = next.at
	}
	next.at = f.since
	for _, state := range f.pending {
		f.passLocked(state.pods)
	}
	f.passLocked(next.pods)
	clear(f.pending)
	f.pending = append(f.pending[:0], next)
	f.due.Store(true)
	select {
	case f.merged <- struct{}{}:
	default: // the loop has not heard the last one yet
	}
}

// passLocked goes on to a state. Pods that have gone since the one before, and that the reader was
// not told of, have been missed.
func (f *feed) passLocked(next Pods) {
	for c := range store.Diff(f.passed, next) {
		if c.Deleted() {
			if told, ok := f.known.Get(c.Key); !ok || told.UID != c.Old.UID {
				f.missed++
			}
		}
	}
	f.passed = next
}

// pop takes the oldest pending state. For an overdue reader, it takes the newest in place of all.
func (f *feed) pop() (state, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pending) == 0 {
		return state{}, false
	}
	if f.telling = false; len(f.pending) > 1 && f.lateLocked() {
		f.mergeLocked(f.pending[len(f.pending)-1])
	}
	next := f.pending[0]
	f.pending = slices.Delete(f.pending, 0, 1) // which keeps the memory for the next one
	f.due.Store(len(f.pending) > 0 || f.removed)
	f.telling, f.since, f.passed = true, next.at, next.pods
	select {
	case <-f.merged: // it was sent before this state was taken
	default:
	}
	return next, true
}

func (f *feed) told(state state) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen, f.telling, f.since, f.known = f.seen || !state.restored, false, time.Time{}, state.pods
	if len(f.pending) > 0 {
		f.since = f.pending[0].at
	}
}

func (f *feed) begin(cancel context.CancelFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun, f.cancel = time.Now(), cancel
}

// stop stops the source and waits for its end.
func (f *feed) stop() {
	f.mu.Lock()
	cancel := f.cancel
	f.mu.Unlock()
	cancel()
	<-f.ended
}

// remove has the reader told that the pods of a stopped source are gone. The pending states are
// dropped.
func (f *feed) remove() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed, f.failed = true, nil
	f.mergeLocked(state{at: time.Now()})
}

func (f *feed) stopTimer() {
	if f.timer != nil {
		f.timer.Stop()
	}
}

func (f *feed) isRemoved() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.removed
}

// ready reports whether Synced no longer waits for the source.
func (f *feed) ready() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen || f.removed || f.optional && time.Since(f.begun) >= f.deadline
}

// safeToPrune reports whether the reader has the newest state of the source, complete and fresh.
// The status counts only if no state was set while it was made: it might be of another state.
func (f *feed) safeToPrune() bool {
	before, told := f.allTold()
	status := f.status()
	after, still := f.allTold()
	return told && still && before == after && status.whole() && status.Verdict(status.StaleAfter).Err == nil
}

// allTold reports whether the reader has all states of the source, and at least one.
func (f *feed) allTold() (sets int, told bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sets, f.seen && !f.restored && f.since.IsZero()
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

// phaseLocked is that of the source's Run. Nothing is missed of a source that was removed.
func (f *feed) phaseLocked() reflector.Phase {
	switch {
	case f.removed:
		return reflector.Watching
	case f.failed != nil, f.over.Load():
		return reflector.Stopped
	case f.begun.IsZero():
		return reflector.Idle
	}
	return reflector.Watching
}

// count counts an update that has been read.
func (f *feed) count(op Op) {
	if i := slices.Index(operations[:], op); i >= 0 {
		f.read[i].Add(1)
	}
}

// reflected is a source with a reflector.
type reflected interface {
	reflected() *reflector.Status
}

func (f *feed) status() Status {
	report := f.source.Report()
	var copied *reflector.Status
	if source, ok := f.source.(reflected); ok {
		copied = source.reflected()
	}
	updates := make(map[Op]int, len(operations))
	for i, op := range operations {
		if n := f.read[i].Load(); n > 0 {
			updates[op] = int(n)
		}
	}
	report.Complete = report.Complete && report.Doubt == nil
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		report.Problems = append(report.Problems[:len(report.Problems):len(report.Problems)], f.failed)
		report.Errors++
	}
	if overdue := !f.begun.IsZero() && time.Since(f.begun) > f.deadline; overdue && !f.seen && !f.optional && f.deadline > 0 {
		err := access.Mark(classOverdue, fmt.Errorf("the %s source is required, and has not been read within %s", f.name, f.deadline))
		report.Problems = append(report.Problems[:len(report.Problems):len(report.Problems)], err)
	}
	s := Status{
		Source: f.name, Phase: f.phaseLocked(), Seen: f.seen, Pods: f.state().Len(), LastSet: f.lastSet, Restored: f.restored,
		Pending: len(f.pending), Missed: f.missed, Updates: updates, Reflector: copied, Report: report, Optional: f.optional,
	}
	if f.telling {
		s.Pending++
	}
	if !f.since.IsZero() {
		s.Lag = time.Since(f.since)
	}
	return s
}
