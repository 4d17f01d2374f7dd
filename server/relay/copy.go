package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
	// refusalAge is how long the upstream must refuse a copy that has been filled: an API server
	// that has just started may not know its roles yet.
	refusalAge = time.Minute
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
	relay  *Relay
	filler filler
	stop   context.CancelFunc

	// The relay's lock guards the next fields.
	phase   phase
	retryAt time.Time   // when a refused copy gives way to another one
	readers int         // requests that are being answered
	usedAt  time.Time   // when a reader was seen last
	idle    *time.Timer // looks for readers

	changed signal.Signal // of phase
}

// startLocked starts a copy. The lock is the relay's.
func (r *Relay) startLocked(k *kind) (*kindCopy, error) {
	scope, _ := r.scope(k.resource.GroupResource())
	client, err := listwatch.NewRESTClient(r.upstream.config, k.resource.GroupVersion())
	if err != nil {
		return nil, err
	}
	c := &kindCopy{kind: k, relay: r, usedAt: time.Now()}
	c.filler, err = k.fill(filling{
		client: client, scope: scope, cache: r.cache,
		reflect: []reflector.Option{reflector.WithMetrics(outcomes{c}), reflector.WithLogger(r.log)},
	})
	if err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, c.stop = context.WithCancel(context.Background())
	if !r.following {
		r.following = r.beginLocked(r.followRelease)
	}
	started := r.beginLocked(func() {
		err := c.filler.run(ctx)
		c.end(ended, err)
		c.filler.close()
	}) && r.beginLocked(func() {
		select {
		case <-c.filler.synced:
			c.serve()
		case <-ctx.Done():
		}
	})
	if !started {
		c.stop()
		return nil, errClosed
	}
	r.log.Info("Copying", "resource", k.resource.String(), "scope", scope.String())
	c.idle = time.AfterFunc(r.linger, c.lookForReaders)
	r.copies[k.resource] = c
	return c, nil
}

// serve lets the readers in.
func (c *kindCopy) serve() {
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	if c.phase == starting {
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
	if c.phase == ended || c.phase == refused {
		return
	}
	if c.phase == serving {
		c.relay.edge.Remove(c.resource)
	}
	c.setLocked(as)
	c.stop()
	c.idle.Stop()
	if as == ended && c.relay.copies[c.resource] == c {
		delete(c.relay.copies, c.resource)
	}
	c.relay.log.Info("Copy ended", "resource", c.resource.String(), "cause", cause)
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
		switch c.state() {
		case serving:
			return true, nil
		case refused, ended:
			return false, nil
		}
		select {
		case <-changed:
		case <-patience.C:
			if status := c.filler.status(); status.Err != nil {
				return false, apierrors.NewTimeoutError(fmt.Sprintf("%s cannot be read from %s (%s): there is no copy yet",
					c.resource.GroupResource(), c.relay.upstream.name, status.Class), 1)
			}
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

func (c *kindCopy) state() phase {
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	return c.phase
}

// enterLocked counts a reader, which leaves later.
func (c *kindCopy) enterLocked() { c.readers++ }

// leave takes back enterLocked.
func (c *kindCopy) leave() {
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	c.readers--
	c.usedAt = time.Now()
}

// lookForReaders ends the copy if no reader has been seen for the time that it lingers. A watch may
// outlive its request, on a connection of its own.
func (c *kindCopy) lookForReaders() {
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	if c.phase == ended || c.phase == refused {
		return
	}
	linger := c.relay.linger
	if c.readers > 0 || c.filler.watchers() > 0 {
		c.usedAt = time.Now()
	}
	unused := time.Since(c.usedAt)
	if unused >= linger {
		c.endLocked(ended, nil)
		return
	}
	c.idle.Reset(min(linger-unused, max(linger/8, time.Second)))
}

// outcomes are the ends of a copy's lists and watches, as its reflector tells them.
type outcomes struct{ *kindCopy }

func (o outcomes) ListEnded(s reflector.ListStats)   { o.note(s.Class) }
func (o outcomes) WatchEnded(s reflector.WatchStats) { o.note(s.Class) }

// note takes in how a list or a watch has ended: the upstream may refuse the copy.
func (c *kindCopy) note(class reflector.Class) {
	if !refuses(class) {
		return
	}
	pause := refusedFor
	if class == reflector.NotFound {
		pause = missingFor
		c.relay.upstream.forget(c.resource.GroupVersion())
	}
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	switch status := c.filler.status(); {
	case c.phase == starting:
		c.retryAt = time.Now().Add(pause)
		c.endLocked(refused, fmt.Errorf("the upstream refuses the relay's list (%s)", class))
	case c.phase != serving:
	case class == reflector.NotFound:
		c.relay.beginLocked(c.endIfGone)
	case refuses(status.Class) && time.Since(status.Since) >= refusalAge:
		c.retryAt = time.Now().Add(pause)
		c.endLocked(refused, fmt.Errorf("the upstream refuses the relay's watch (%s)", class))
	}
}

func (c *kindCopy) endIfGone() {
	if c.relay.upstream.gone(c.resource) {
		c.end(ended, errors.New("the upstream serves it no more"))
	}
}

// refuses reports whether the upstream does not let the relay read a kind.
func refuses(class reflector.Class) bool {
	switch class {
	case reflector.Forbidden, reflector.Unauthorized, reflector.NotFound, reflector.Refused:
		return true
	}
	return false
}
