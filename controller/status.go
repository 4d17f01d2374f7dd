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
	"github.com/tributary-go/tributary/reflector"
)

// Phase is where a controller is in its life.
type Phase = loop.Phase

// The phases, in their order. Waiting is for copies, and Stopping for calls under way.
const (
	Idle     = loop.Idle
	Waiting  = loop.Waiting
	Working  = loop.Working
	Stopping = loop.Stopping
	Ended    = loop.Ended
)

// Counts are the keys and the calls of a controller.
type Counts = loop.Counts

// Status is the health of a controller at one moment.
type Status struct {
	Phase Phase
	// Waits says which copies are not right, and why, while the phase is Waiting.
	Waits error
	// Stuck says what goes on for longer than StuckAfter: a call, the wait of a key with a change,
	// or failures of all calls. Nil if there is nothing.
	Stuck error
	Counts
}

// Status returns the present health. It does not block.
func (c *Controller[K]) Status() Status {
	phase, waits := c.life.Now()
	return Status{phase, waits, c.queue().Stuck(cmp.Or(c.StuckAfter, 10*time.Minute)), c.queue().Counts()}
}

// Ready returns nil if the loop works, is not stuck, and its copies are right, as of
// [informer.Informer.Ready].
func (c *Controller[K]) Ready(maxStaleness time.Duration) error {
	switch s := c.Status(); s.Phase {
	case Working:
		err := c.copiesReady(maxStaleness)
		if s.Stuck != nil {
			err = errors.Join(fmt.Errorf("controller: %w", s.Stuck), err)
		}
		return err
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
	metrics.Gauge("tributary_controller_working", "1 while the loop works.", func(s Status) bool { return s.Phase == Working }),
	metrics.By("class", func(s Status) map[string]bool {
		if class := s.class(); class != reflector.OK {
			return map[string]bool{string(class): true}
		}
		return nil
	}, metrics.Gauge("tributary_controller_not_right", "1 while the loop does not work, or is stuck; the class says why.", metrics.Itself[bool])))

// class is that of the loop's verdict.
func (s Status) class() reflector.Class {
	switch {
	case s.Phase == Idle:
		return reflector.NotRun
	case s.Phase == Waiting:
		return reflector.NotSynced
	case s.Phase > Working:
		return reflector.Ended
	case s.Stuck != nil:
		return reflector.Stuck
	}
	return reflector.OK
}

// Samples implements [metrics.Reporter].
func (c *Controller[K]) Samples(name string) iter.Seq[metrics.Sample] {
	s := c.Status()
	return slices.Values(append(working(s, name), s.Counts.Samples(name)...))
}

// Causes implements [metrics.Explainer].
func (c *Controller[K]) Causes(name string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		s := c.Status()
		if err := cmp.Or(s.Waits, s.Stuck, s.Err); err != nil {
			yield(name, err)
		}
	}
}
