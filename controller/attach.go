package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tributary-go/tributary/internal/loop"
)

// attachments are the feeds that come and go while a controller runs.
type attachments[K comparable] struct {
	mu      sync.Mutex // guards the fields below
	all     map[*attachment[K]]bool
	ctx     context.Context // of Run; nil before that
	c       *Controller[K]
	running sync.WaitGroup
}

type attachment[K comparable] struct {
	feed  Feed[K]
	left  context.Context // ends with detach
	leave context.CancelFunc
	ended chan struct{} // closed when the feed has returned; nil before it runs
}

// Attach adds a feed that may go again, such as that of a cluster that joins. Its keys are called
// as they come: the loop does not wait for its copy, whose health is not that of Ready. If its copy
// ends, that is logged. After detach, which waits for the feed's function, no key comes from it;
// those that wait are called. A controller with a Checkpoint has no such feeds.
func (c *Controller[K]) Attach(f Feed[K]) (detach func(), err error) {
	switch {
	case f.run == nil:
		return nil, errors.New("controller: Attach: the feed is empty: make it with For, From, FromMeta or Moments")
	case c.Checkpoint != "":
		return nil, errors.New("controller: Attach: with a Checkpoint, all feeds are in Feeds")
	}
	a := &attachment[K]{feed: f}
	a.left, a.leave = context.WithCancel(context.Background())
	set := &c.attached
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.all == nil {
		set.all = map[*attachment[K]]bool{}
	}
	set.all[a] = true
	set.runLocked(a)
	return func() { set.detach(a) }, nil
}

// start runs the feeds that were attached before Run, and has later ones run at once.
func (s *attachments[K]) start(ctx context.Context, c *Controller[K]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.c = ctx, c
	for a := range s.all {
		s.runLocked(a)
	}
}

func (s *attachments[K]) runLocked(a *attachment[K]) {
	if s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	a.ended = make(chan struct{})
	s.running.Go(func() {
		defer close(a.ended)
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		defer context.AfterFunc(a.left, cancel)()
		if err := a.feed.run(ctx, s.c, -1, func(func() bool) {}); err != nil {
			s.c.log.Error(err, "A feed has ended", "feed", a.feed.name)
		}
	})
}

func (s *attachments[K]) detach(a *attachment[K]) {
	a.leave()
	s.mu.Lock()
	delete(s.all, a)
	ended := a.ended
	s.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

func (s *attachments[K]) feeds() (all []Feed[K]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.all {
		all = append(all, a.feed)
	}
	return all
}

// wait waits for all feeds, and names those that still run when over closes.
func (s *attachments[K]) wait(over <-chan struct{}) (left []string) {
	if loop.Within(over, &s.running) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.all {
		select {
		case <-a.ended:
		default:
			left = append(left, fmt.Sprintf("an attached feed (%s)", a.feed.name))
		}
	}
	return left
}
