package controller

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tributary-go/tributary/internal/loop"
	"github.com/tributary-go/tributary/metrics"
)

// Phase is where a controller is in its life.
type Phase uint8

// The phases, in their order. Waiting is for the copies, and Stopping for the calls under way.
const (
	Idle Phase = iota
	Waiting
	Working
	Stopping
	Ended
)

// String is the phase in lower case.
func (p Phase) String() string {
	return []string{"idle", "waiting", "working", "stopping", "ended"}[p]
}

// Counts are the keys and the calls of a controller.
type Counts = loop.Counts

// Status is the health of a controller at one moment.
type Status struct {
	Phase Phase
	// Waits says which copies are not right, and why, while the phase is Waiting.
	Waits error
	Counts
}

// Status returns the present health. It does not block.
func (c *Controller[K]) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Status{c.phase, c.waits, c.queue().Counts()}
}

func (c *Controller[K]) at(phase Phase) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase == phase
}

// enter goes on to a phase, or stays in it. It is false if the phase is over.
func (c *Controller[K]) enter(next Phase, waits error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if next < c.phase {
		return false
	}
	c.phase, c.waits = next, waits
	return true
}

// Ready returns nil if the loop works and its copies are right, as of [informer.Informer.Ready].
func (c *Controller[K]) Ready(maxStaleness time.Duration) error {
	switch s := c.Status(); s.Phase {
	case Working:
		return c.copiesReady(maxStaleness)
	case Waiting:
		return fmt.Errorf("controller: waiting for copies: %w", s.Waits)
	default:
		return fmt.Errorf("controller: it is %s", s.Phase)
	}
}

func (c *Controller[K]) copiesReady(maxStaleness time.Duration) error {
	var all []error
	for i, f := range c.Feeds {
		if err := f.ready(maxStaleness); err != nil {
			all = append(all, fmt.Errorf("%s: %w", f.describe(i), err))
		}
	}
	return errors.Join(all...)
}

var working = metrics.NewTable([]string{"controller"},
	metrics.Gauge("tributary_controller_working", "1 while the loop works.", func(s Status) bool { return s.Phase == Working }))

// Samples implements [metrics.Reporter].
func (c *Controller[K]) Samples(name string) iter.Seq[metrics.Sample] {
	s := c.Status()
	return slices.Values(append(working(s, name), s.Counts.Samples(name)...))
}

// Causes implements [metrics.Explainer].
func (c *Controller[K]) Causes(name string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		s := c.Status()
		if err := cmp.Or(s.Waits, s.Err); err != nil {
			yield(name, err)
		}
	}
}
