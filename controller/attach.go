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
	mu    sync.Mutex // guards the fields below
	all   map[*attachment[K]]bool
	c     *Controller[K]
	feeds *loop.Parts     // of Run
	ctx   context.Context // of Run; nil before that
}

type attachment[K comparable] struct {
	feed Feed[K]
	// Both are nil before it runs.
	leave context.CancelFunc
	ended chan struct{} // closed when it has left
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
func (s *attachments[K]) start(ctx context.Context, c *Controller[K], feeds *loop.Parts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.c, s.feeds = ctx, c, feeds
	for a := range s.all {
		s.runLocked(a)
	}
}

// runLocked runs a feed beside those of Run. Its end is not theirs.
func (s *attachments[K]) runLocked(a *attachment[K]) {
	if s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	ctx, leave := context.WithCancel(s.ctx)
	a.leave, a.ended = leave, make(chan struct{})
	s.feeds.Go(ctx, fmt.Sprintf("an attached feed (%s)", a.feed.name), func(ctx context.Context) error {
		defer close(a.ended)
		if err := a.feed.run(ctx, s.c, -1, func(func() bool) {}); err != nil {
			s.c.log.Error(err, "A feed has ended", "feed", a.feed.name)
		}
		<-ctx.Done()
		return nil
	})
}

func (s *attachments[K]) detach(a *attachment[K]) {
	s.mu.Lock()
	delete(s.all, a)
	leave, ended := a.leave, a.ended
	s.mu.Unlock()
	if leave != nil {
		leave()
		<-ended
	}
}

// present are the feeds that are attached now.
func (s *attachments[K]) present() (all []Feed[K]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.all {
		all = append(all, a.feed)
	}
	return all
}
