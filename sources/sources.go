package sources

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/manifest"
)

// Sources merges the pod sources of one node. Make it with [New], call Run once, and read Updates.
// All methods are safe for concurrent use.
type Sources struct {
	node        string
	log         *logr.Logger // nil: that of Run's context, else klog's
	missing     error        // options that are nil, or cannot be used
	likeKubelet bool
	release     manifest.Release
	checkpoints string  // folder
	inputs      []Input // that New was given

	updates chan PodUpdate
	wake    chan struct{} // a feed is due
	synced  chan struct{}
	ended   chan struct{} // Run has returned
	begun   atomic.Bool   // Run has been called

	// These belong to the loop of Run.
	isSynced bool
	// when the reader of the update under way is overdue; nil before it was needed
	late *time.Timer

	// These two are replaced with mu held, and never modified.
	feeds     atomic.Pointer[[]*feed]
	observers atomic.Pointer[[]Observer]
	failures  atomic.Int64 // sources that have ended with an error
	telling   sync.Mutex   // held while the observers are told of a change

	mu      sync.Mutex // guards the fields below
	phase   phase
	failed  error          // with this error Run has ended
	launch  func(*feed)    // starts a source of this run, with mu held
	running sync.WaitGroup // one for each source
}

// phase is how far a run is.
type phase int

const (
	idle phase = iota
	runs
	over
)

// Option is an [Input], or configures the sources.
type Option interface {
	apply(*Sources)
}

// option is an Option that adds no source.
type option func(*Sources)

func (o option) apply(s *Sources) { o(s) }

// WithLogger logs changes of a source's health at level 0, and each look at a file or URL at level
// 2. Problems that a person must mend are errors. The default is client-go's convention: the logger
// in Run's context, else klog's.
func WithLogger(log logr.Logger) Option { return option(func(s *Sources) { s.log = &log }) }

// New merges the pod sources of one node; node is the metadata.name of its Node object. Nothing
// happens before Run, which refuses a bad name.
func New(node string, options ...Option) *Sources {
	s := &Sources{
		node:    node,
		updates: make(chan PodUpdate), wake: make(chan struct{}, 1), synced: make(chan struct{}), ended: make(chan struct{}),
	}
	missing := null.Options("sources: New", options, func(option Option) { option.apply(s) })
	s.missing = errors.Join(missing, s.missing)
	var feeds []*feed
	for _, input := range s.inputs {
		feeds = append(feeds, s.feedOf(input.shown()))
	}
	s.feeds.Store(&feeds)
	s.observers.Store(&[]Observer{})
	return s
}

// feedOf makes the feed of an input. All options must have been applied.
func (s *Sources) feedOf(input Input) *feed {
	f := newFeed(input)
	if s.likeKubelet {
		f.merge = newKubeletMerge(f.name, time.Now) // for the kubelet, pending updates have no age
	} else {
		merge := newMerge(f.name, time.Now)
		merge.marked = f.live
		f.merge, f.patience = merge, keepsUp
	}
	return f
}

// checkInputs is the error of the first input that adds no source.
func (s *Sources) checkInputs() error {
	if s.missing != nil {
		return s.missing
	}
	for _, input := range s.inputs {
		if err := input.check(); err != nil {
			return fmt.Errorf("sources: %w", err)
		}
	}
	return nil
}

// Node is the name of the node, as New was given it.
func (s *Sources) Node() string { return s.node }

// Updates is the channel of all sources. It is unbuffered, and closed when Run returns. One
// goroutine reads it.
func (s *Sources) Updates() <-chan PodUpdate { return s.updates }

// Synced is closed once the first state of every source has been read from Updates.
// [Input.Optional] limits the wait for a source.
func (s *Sources) Synced() <-chan struct{} { return s.synced }

// Status is the health of one source.
type Status struct {
	// Source is the source's name.
	Source string
	// Optional: [Sources.Synced] waits for the source no longer than a deadline, or not at all. See
	// [Input.Optional].
	Optional bool
	// Phase is [reflector.Idle] before the source's Run, and [reflector.Stopped] after it. Problems
	// has the error of a Run that failed. In between, it is [reflector.Watching].
	Phase reflector.Phase
	// Seen: the first state of the source has been read from Updates.
	Seen bool
	// Pods is the number of pods in the newest state, which was set at LastSet.
	Pods    int
	LastSet time.Time
	// Restored: the newest state is from a checkpoint, and the API server has not answered since.
	Restored bool
	// Pending is the number of states that the reader of Updates has not read whole, and Lag for
	// how long the oldest of them has waited. Both are zero if the reader keeps up.
	Pending int
	Lag     time.Duration
	// Missed counts the pods that came and went while the reader was late, so that no update may
	// have told of them. An [Observer] hears of each.
	Missed int
	// Updates counts the updates that have been read, by their operation.
	Updates map[Op]int
	// Reflector is the health of the copy of a source that reads from an API server. It is nil for
	// other sources, and until the source runs.
	Reflector *reflector.Status
	Report
}

// Status is the present health of each source, in the order of the inputs, and then of the
// observers.
func (s *Sources) Status() []Status {
	var all []Status
	for _, f := range s.list() {
		all = append(all, f.status())
	}
	for _, o := range *s.observers.Load() {
		if o.Status != nil {
			all = append(all, o.Status())
		}
	}
	return all
}

// Run runs the sources until ctx ends, which is no error. It blocks. When it returns, also with an
// error, Updates is closed and all goroutines have ended. It fails at once without a node or
// sources, on a bad name of the node, on an input with nil, a bad option or an empty path or URL,
// on a second call, if the folder of checkpoints is not there, and if two API servers of one name
// would share a checkpoint. If all sources have ended with an error, so does Run.
func (s *Sources) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.begun.Swap(true) {
		return errors.New("sources: Run was called twice: make new sources for each run")
	}
	// also if it cannot begin: a reader of Updates must not wait for ever
	defer close(s.updates)
	defer close(s.ended)
	if err := s.begin(ctx); err != nil {
		s.refuse(err)
		return err
	}
	err := s.deliver(ctx)
	cancel()
	s.end(err)
	return err
}

// begin starts all sources.
func (s *Sources) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.node == "":
		return errors.New("sources: the node has no name: give New the name that pods have in spec.nodeName")
	case len(validation.IsDNS1123Subdomain(s.node)) > 0:
		return fmt.Errorf("sources: %q is not the name of a node: %s; give New the name that pods have in spec.nodeName",
			s.node, validation.IsDNS1123Subdomain(s.node)[0])
	case s.checkInputs() != nil:
		return s.checkInputs()
	case len(s.list()) == 0:
		return errors.New("sources: there is no source: give New at least one, such as APIServer, File or Custom")
	}
	if err := s.checkFolder(); err != nil {
		return err
	}
	if err := s.checkCheckpoints(s.list()); err != nil {
		return err
	}
	if err := s.startObservers(ctx); err != nil {
		return fmt.Errorf("sources: %w", err)
	}
	s.phase = runs
	s.launch = func(f *feed) { s.startLocked(ctx, f) }
	for _, f := range s.list() {
		s.launch(f)
	}
	return nil
}

// refuse shows that Run could not begin.
func (s *Sources) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.failed = over, err
	for _, f := range s.list() {
		f.fail(access.Mark(string(reflector.Ended), err))
	}
}

func (s *Sources) logger(ctx context.Context) logr.Logger {
	if s.log != nil {
		return *s.log
	}
	return klog.FromContext(ctx)
}

func (s *Sources) startLocked(ctx context.Context, f *feed) {
	ctx, cancel := context.WithCancel(ctx)
	f.begin(cancel)
	if f.optional {
		f.timer = time.AfterFunc(f.deadline, s.look) // for Synced
	}
	s.running.Go(func() {
		defer s.look()
		defer close(f.ended)
		defer cancel()
		s.runSource(ctx, f)
	})
}

// end waits for all sources. Add starts none any more.
func (s *Sources) end(err error) {
	s.mu.Lock()
	s.phase, s.failed = over, err
	for _, f := range s.list() {
		f.stopTimer()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// list is the feeds now. It takes no lock.
func (s *Sources) list() []*feed { return *s.feeds.Load() }

// runSource runs one source. Its end does not end another one.
func (s *Sources) runSource(ctx context.Context, f *feed) {
	log := s.logger(ctx).WithValues("source", f.name)
	sink := &Sink{node: s.node, name: f.name, log: log, likeKubelet: s.likeKubelet, release: s.release, nodeState: f.node, checkpoints: s.Checkpoints(), set: func(next state) {
		s.changed(f, next.pods) // first: an observer knows each pod that the reader is told
		f.push(next)
		s.look()
	}}
	err := f.source.Run(ctx, sink)
	f.over.Store(true)
	if err != nil && ctx.Err() == nil {
		f.fail(access.Mark(string(reflector.Ended), fmt.Errorf("the %s source has ended: %w", f.name, err)))
		s.failures.Add(1)
		log.Error(err, "Source has ended")
	}
}

// look wakes the loop of Run.
func (s *Sources) look() {
	select {
	case s.wake <- struct{}{}:
	default: // it has not woken yet, and will see every feed that is due
	}
}

// deliver tells the reader the states, as differences, until ctx ends or every source has failed.
func (s *Sources) deliver(ctx context.Context) error {
	for {
		delivered := false
		// before the states are taken: the last states of a failed source are told
		failed := s.failure()
		for _, f := range s.list() {
			if !f.due.Load() {
				continue
			}
			if ctx.Err() != nil {
				return nil // the last tell may have stopped halfway
			}
			if next, ok := f.pop(); ok {
				delivered = true
				s.tell(ctx, f, next)
			} else if f.isRemoved() {
				s.drop(f)
			}
		}
		if delivered {
			continue
		}
		s.noteSynced()
		if failed != nil {
			return failed
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// tell hands over one state of one source. If the source moves on and the reader is late, the rest
// of the plan is obsolete.
func (s *Sources) tell(ctx context.Context, f *feed, next state) {
	for _, update := range f.merge.plan(next) {
		update.Restored = next.restored
		if len(update.Pods) == 0 && f.isRemoved() {
			continue // it never had anything to say
		}
		if !s.send(ctx, f, update, next.at) {
			return
		}
		f.count(update.Op)
		f.merge.sent(update)
	}
	f.told(next)
	s.noteSynced()
}

// send hands one update to the reader. It returns false if ctx has ended or the plan is obsolete. A
// waiting reader gets the update at once; only for another one the timer is set.
func (s *Sources) send(ctx context.Context, f *feed, update PodUpdate, since time.Time) bool {
	select {
	case s.updates <- update:
		return true
	case <-f.merged:
		return false
	case <-ctx.Done():
		return false
	default:
	}
	patience := time.Until(since.Add(f.patience))
	if s.late == nil {
		s.late = time.NewTimer(patience)
	} else {
		s.late.Reset(patience)
	}
	defer s.late.Stop()
	for {
		select {
		case s.updates <- update:
			return true
		case <-s.late.C: // from now on f.merged receives
			if f.late() {
				return false
			}
		case <-f.merged:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// noteSynced closes Synced once. Only the loop of Run calls it.
func (s *Sources) noteSynced() {
	if s.isSynced {
		return
	}
	for _, f := range s.list() {
		if !f.ready() {
			return
		}
	}
	s.isSynced = true
	close(s.synced)
}

// failure is the joined error if every source has ended with one, and else nil.
func (s *Sources) failure() error {
	if s.failures.Load() == 0 {
		return nil
	}
	var all []error
	for _, f := range s.list() {
		err := f.failure()
		if err == nil {
			return nil
		}
		all = append(all, err)
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("sources: every source has ended: %w", errors.Join(all...))
}
