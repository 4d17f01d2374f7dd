package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/signal"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
)

const (
	// startPatience is how long a reader waits for a copy that fails to be filled.
	startPatience = 3 * time.Second
	// refusedFor is how long the readers of a refused copy are passed on before one tries again,
	// and missingFor is that of a copy of a kind that the upstream does not serve.
	refusedFor = 30 * time.Second
	missingFor = time.Second
	// refusalPatience is how long the upstream must refuse a copy that has been filled: an API
	// server that has just started may not know its roles yet.
	refusalPatience = time.Minute
)

// phase is the state of a kindCopy.
type phase int

const (
	starting phase = iota // readers wait
	serving               // readers are answered
	refused               // readers are passed on, for a while
	ended                 // readers are passed on; the next one starts another copy
)

// kindCopy is the copy of one kind. It has a goroutine that fills it, and one that waits until it
// is filled.
type kindCopy struct {
	*kind
	relay *Relay
	stop  context.CancelFunc
	done  chan struct{} // closed when the copy has ended, and its journal is written

	// The relay's lock guards the next fields.
	phase   phase
	filler  *filler     // nil before it is made, and at the end
	retryAt time.Time   // when a refused copy gives way to another one
	readers int         // requests, watches among them
	leftAt  time.Time   // when the last of them left
	idle    *time.Timer // ends the copy

	changed signal.Signal // of phase
}

// startLocked starts a copy. The lock is the relay's.
func (r *Relay) startLocked(k *kind) (*kindCopy, error) {
	c := &kindCopy{kind: k, relay: r, done: make(chan struct{})}
	var ctx context.Context
	ctx, c.stop = context.WithCancel(context.Background())
	before := r.endings[k.resource]
	if refused := r.copies[k.resource]; refused != nil {
		before = refused.done
	}
	if r.over.Err() != nil || !r.work.Go(func() { c.run(ctx, before) }) {
		c.stop()
		return nil, errClosed
	}
	c.idle = time.AfterFunc(r.linger, c.endIfUnused)
	r.copies[k.resource] = c
	return c, nil
}

// run makes, fills and closes the copy, once the one before it has ended: they share a journal.
func (c *kindCopy) run(ctx context.Context, before <-chan struct{}) {
	defer close(c.done)
	if before != nil {
		<-before
	}
	f, err := c.make()
	if err != nil {
		c.relay.log.Error(err, "A copy cannot be made", "resource", c.resource.String())
		c.refuse(refusedFor, errors.New("the copy cannot be made: the log says why"))
		return
	}
	defer f.close()
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() {
		select {
		case <-f.synced:
			c.serve()
		case <-ctx.Done():
		}
	})
	err = f.run(klog.NewContext(ctx, c.relay.log))
	c.end(ended, err)
}

func (c *kindCopy) make() (*filler, error) {
	r := c.relay
	scope, _ := r.scope(c.resource.GroupResource())
	config := rest.CopyConfig(r.upstream.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return guard{next, c} })
	client, err := listwatch.NewRESTClient(config, c.resource.GroupVersion())
	if err != nil {
		return nil, err
	}
	f, err := c.fill(filling{
		client: client, scope: scope, cache: r.cache, journals: r.journals, upstream: r.upstream.name,
		reflect: []reflector.Option{reflector.WithMetrics(outcomes{c}), reflector.WithLogger(r.log)},
	})
	if err != nil {
		return nil, err
	}
	kept := f.journal()
	r.log.Info("Copying", "resource", c.resource.String(), "scope", scope.String(), "restored", kept.Restored)
	if kept.Unused != nil {
		r.log.Error(kept.Unused, "The copy is read anew", "resource", c.resource.String())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.filler = &f
	return &f, nil
}

// serve lets the readers in.
func (c *kindCopy) serve() {
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	if c.phase == starting {
		delete(c.relay.refusals, c.resource)
		c.filler.serve(c.relay.edge)
		c.setLocked(serving)
	}
}

func (c *kindCopy) setLocked(to phase) {
	c.phase = to
	c.changed.Broadcast()
}

// end ends the copy: its watches end, and its readers are passed on.
func (c *kindCopy) end(as phase, cause error) {
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	c.endLocked(as, cause)
}

func (c *kindCopy) endLocked(as phase, cause error) {
	if !c.isUsable() {
		return
	}
	if c.phase == serving {
		c.relay.edge.Remove(c.resource)
	}
	c.setLocked(as)
	c.stop()
	c.idle.Stop()
	if as == ended {
		delete(c.relay.copies, c.resource)
		c.relay.endings[c.resource] = c.done
	}
	c.filler = nil
	c.relay.log.Info("Copy ended", "resource", c.resource.String(), "cause", cause)
}

// refuse ends the copy: its readers are passed on for a while.
func (c *kindCopy) refuse(pause time.Duration, cause error) {
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	c.refuseLocked(pause, cause)
}

func (c *kindCopy) refuseLocked(pause time.Duration, cause error) {
	if !c.isUsable() {
		return
	}
	c.retryAt = time.Now().Add(pause)
	c.endLocked(refused, cause)
	c.relay.noteRefusalLocked(c.resource, cause)
}

// triesAgainLocked reports whether a refused copy gives way to another one.
func (c *kindCopy) triesAgainLocked() bool {
	return c.phase == refused && !time.Now().Before(c.retryAt)
}

// await waits until readers are let in. It reports false if they are to be passed on. The error is
// the request's end, or a Status that says why the copy is not filled.
func (c *kindCopy) await(ctx context.Context) (ok bool, err error) {
	patience := time.NewTicker(startPatience)
	defer patience.Stop()
	for {
		changed := c.changed.Wait()
		phase, status := c.state()
		switch phase {
		case serving:
			return true, nil
		case refused, ended:
			return false, nil
		}
		select {
		case <-changed:
		case <-patience.C:
			if status.Err != nil {
				return false, apierrors.NewTimeoutError(fmt.Sprintf("%s cannot be read from %s (%s): there is no copy yet",
					c.resource.GroupResource(), c.relay.upstream.name, status.Class), 0)
			}
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

func (c *kindCopy) state() (p phase, status reflector.Status) {
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	if c.filler != nil {
		status = c.filler.status()
	}
	return c.phase, status
}

// isGone reports whether the copy is not served any more, or will not be for long: the upstream
// answers its watch or its proof with a 404.
func (c *kindCopy) isGone() bool {
	if _, status := c.state(); status.Class == reflector.NotFound {
		return true
	}
	for _, h := range c.relay.edge.Health() {
		if h.Resource == c.resource {
			return h.Class == reflector.NotFound
		}
	}
	return true
}

// enterLocked counts a reader, and leave takes that back.
func (c *kindCopy) enterLocked() {
	c.readers++
	c.idle.Stop()
}

func (c *kindCopy) leave() {
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	c.readers--
	c.leftAt = time.Now()
	if c.readers == 0 && c.isUsable() {
		c.idle.Reset(c.relay.linger)
	}
}

// isUsable reports whether the copy has readers, or may have some. The lock is held.
func (c *kindCopy) isUsable() bool { return c.phase == starting || c.phase == serving }

// endIfUnused ends the copy some time after its last reader, unless another one has come meanwhile.
func (c *kindCopy) endIfUnused() {
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	if c.readers == 0 && time.Since(c.leftAt) >= c.relay.linger {
		c.endLocked(ended, nil)
	}
}

// outcomes are the ends of a copy's lists and watches, as its reflector tells them.
type outcomes struct{ *kindCopy }

func (o outcomes) ListEnded(s reflector.ListStats) {
	if !s.WatchList || s.Class == reflector.StoreError { // else the reflector lists next
		o.note(s.Class)
	}
}

func (o outcomes) WatchEnded(s reflector.WatchStats) { o.note(s.Class) }

// note takes in how a list or a watch has ended: the upstream may refuse the copy.
func (c *kindCopy) note(class reflector.Class) {
	if !refuses(class) && !unfit(class) {
		return
	}
	pause := refusedFor
	if class == reflector.NotFound {
		pause = missingFor
		c.relay.upstream.forget(c.resource.GroupVersion())
	}
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	if !c.isUsable() {
		return
	}
	switch status := c.filler.status(); {
	case c.phase == starting:
		c.refuseLocked(pause, fmt.Errorf("the upstream's list cannot be copied (%s)", class))
	case unfit(class): // the copy heals, or stays marked
	case refuses(status.Class) && time.Since(status.Since) >= refusalPatience:
		c.refuseLocked(pause, fmt.Errorf("the upstream refuses the relay's watch (%s)", class))
	}
}

// unfit reports whether a list is not of the kind that can be copied: an aggregated API server may
// have resource versions that are no numbers.
func unfit(class reflector.Class) bool {
	return class == reflector.StoreError || class == reflector.WrongAnswer
}

// refuses reports whether the upstream does not let the relay read a kind.
func refuses(class reflector.Class) bool {
	switch class {
	case reflector.Forbidden, reflector.Unauthorized, reflector.NotFound, reflector.Refused:
		return true
	}
	return false
}
