package sources

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// Sources are the pod sources of one node and their merge. Make one with [New], call Run once, and read Updates.
type Sources struct {
	node string
	log  logr.Logger

	likeKubelet bool
	feeds       []*feed
	updates     chan PodUpdate
	wake        chan struct{} // a state has been set
	synced      chan struct{}
	began       atomic.Bool
}

// Option adds a source, or says how the sources work.
type Option func(*Sources)

// With adds a source of your own. APIServer, File and HTTP add those of this package; any number of a kind is fine.
func With(source Source) Option {
	return func(s *Sources) { s.feeds = append(s.feeds, &feed{source: source, merged: make(chan struct{}, 1)}) }
}

// WithLogger logs what changes (a source well or not) at level 0, and each look at a file or URL at level 2. Default:
// nowhere.
func WithLogger(log logr.Logger) Option { return func(s *Sources) { s.log = log } }

// New joins sources of pods of the node of that name. Nothing happens before Run.
func New(node string, options ...Option) *Sources {
	s := &Sources{
		node: node, log: logr.Discard(),
		updates: make(chan PodUpdate), wake: make(chan struct{}, 1), synced: make(chan struct{}),
	}
	for _, option := range options {
		option(s)
	}
	for _, f := range s.feeds {
		if s.likeKubelet {
			f.merge = newKubeletMerge(f.source.Name(), time.Now)
		} else {
			f.merge = newMerge(f.source.Name(), time.Now)
		}
	}
	return s
}

// Updates is the one channel of all sources. It is unbuffered, and closed when Run returns. One goroutine reads it.
func (s *Sources) Updates() <-chan PodUpdate { return s.updates }

// Synced is closed once the first state of every source has been read from Updates; see [Optional] for sources that it
// does not wait for.
func (s *Sources) Synced() <-chan struct{} { return s.synced }

// Status is the health of one source.
type Status struct {
	// Source is the source's name.
	Source string
	// Seen: its first state has been read from Updates.
	Seen bool
	// Pods is the number of pods in its newest state; LastSet is when that came.
	Pods    int
	LastSet time.Time
	Report
}

// Status is the health of each source now, in the order in which they were given.
func (s *Sources) Status() []Status {
	var all []Status
	for _, f := range s.feeds {
		all = append(all, f.status())
	}
	return all
}

// Run runs the sources until ctx ends, which is no error. It blocks, closes Updates, and everything it started has
// ended when it returns. It fails at once without a node or sources, and on a second call. When all sources have ended
// with an error, so does Run.
func (s *Sources) Run(ctx context.Context) error {
	switch {
	case s.node == "":
		return errors.New("sources: the node has no name: give New the name that pods have in spec.nodeName")
	case len(s.feeds) == 0:
		return errors.New("sources: there is no source: give New at least one of APIServer, File, HTTP and With")
	case s.began.Swap(true):
		return errors.New("sources: Run was called twice: make new sources for each run")
	}
	defer close(s.updates)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	ended := make(chan struct{})
	for _, f := range s.feeds {
		f.begin()
		if f.optional {
			defer time.AfterFunc(f.deadline, s.look).Stop() // for Synced
		}
		running.Go(func() { s.runSource(ctx, f) })
	}
	go func() {
		running.Wait()
		close(ended)
	}()
	defer func() { <-ended }()
	defer cancel()
	return s.deliver(ctx, ended)
}

// runSource runs one source; its end never ends another one.
func (s *Sources) runSource(ctx context.Context, f *feed) {
	log := s.log.WithValues("source", f.source.Name())
	sink := &Sink{node: s.node, log: log, likeKubelet: s.likeKubelet, set: func(next state) {
		f.push(next)
		s.look()
	}}
	if err := f.source.Run(ctx, sink); err != nil && ctx.Err() == nil {
		f.fail(fmt.Errorf("the %s source has ended: %w", f.source.Name(), err))
		log.Info("Source has ended", "error", err.Error())
	}
}

// look wakes the loop of Run.
func (s *Sources) look() {
	select {
	case s.wake <- struct{}{}:
	default: // it has not woken yet, and will look at all feeds
	}
}

// deliver hands the states to the reader, as differences, until ctx ends or every source has.
func (s *Sources) deliver(ctx context.Context, ended <-chan struct{}) error {
	for {
		delivered := false
		for _, f := range s.feeds {
			if ctx.Err() != nil {
				return nil // tell may have stopped halfway, so that no further plan would be right
			}
			if next, ok := f.pop(); ok {
				delivered = true
				s.tell(ctx, f, next)
			}
		}
		if delivered {
			continue
		}
		s.noteSynced()
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil
		case <-ended:
			switch {
			case ctx.Err() != nil:
				return nil
			case len(s.wake) > 0: // states are left to be told
			case s.allFailed():
				return s.failure()
			default:
				ended = nil // a source that says all it has to say at once is done, not broken
			}
		}
	}
}

// tell hands over one state of one source. When the source moves on so far meanwhile that its states were merged, what
// the reader has not taken yet is planned anew.
func (s *Sources) tell(ctx context.Context, f *feed, next state) {
	var sent []PodUpdate
	for _, update := range f.merge.plan(next) {
		select {
		case s.updates <- update:
			sent = append(sent, update)
			f.merge.sent(update)
		case <-f.merged:
			f.merge.interrupted(next, sent)
			return
		case <-ctx.Done():
			return
		}
	}
	f.merge.settled(next)
	f.told()
	s.noteSynced()
}

// noteSynced closes Synced once.
func (s *Sources) noteSynced() {
	select {
	case <-s.synced:
		return
	default:
	}
	for _, f := range s.feeds {
		if !f.ready() {
			return
		}
	}
	close(s.synced)
}

func (s *Sources) allFailed() bool {
	for _, f := range s.feeds {
		if f.failure() == nil {
			return false
		}
	}
	return true
}

func (s *Sources) failure() error {
	var all []error
	for _, f := range s.feeds {
		all = append(all, f.failure())
	}
	return fmt.Errorf("sources: every source has ended: %w", errors.Join(all...))
}
