package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/tributary-go/tributary/internal/signal"
)

// Phase is where a loop is in its life. The phases have an order.
type Phase uint8

// The phases. Waiting is for copies, and Stopping for calls under way.
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

// Life is the phase of a loop.
type Life struct {
	mu    sync.Mutex
	phase Phase
	waits error
}

// Now returns the phase and, while it is Waiting, the reason.
func (l *Life) Now() (phase Phase, waits error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase, l.waits
}

// Enter goes on to a phase. It is false if the phase has begun already, or is over.
func (l *Life) Enter(next Phase) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next <= l.phase {
		return false
	}
	l.phase, l.waits = next, nil
	return true
}

// wait notes the reason why the loop waits.
func (l *Life) wait(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == Waiting {
		l.waits = reason
	}
}

// Await checks at each signal, until nothing is in the way of Working. It is false if ctx ends
// first. What gives no signal, such as the proof of a restored copy, is seen within a second.
func (l *Life) Await(ctx context.Context, log logr.Logger, signals *signal.Signal, check func() error) bool {
	said := time.Now()
	for {
		signalled := signals.Wait()
		err := check()
		if err == nil {
			return l.Enter(Working)
		}
		if l.wait(err); time.Since(said) > 10*time.Second {
			said = time.Now()
			log.Info("Waiting for copies to be right", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return false
		case <-signalled:
		case <-time.After(time.Second):
		}
	}
}

// Parts run beside a loop.
type Parts struct {
	running sync.WaitGroup
	errs    *errorList

	mu    sync.Mutex
	names map[string]int // of those that run
}

type errorList struct {
	mu  sync.Mutex
	all []error
	end context.CancelCauseFunc
}

// NewParts makes two groups of parts. An error of any part ends a context by end. The result of
// errs has all errors, in the order in which they came.
func NewParts(end context.CancelCauseFunc) (first, second *Parts, errs func() error) {
	list := &errorList{end: end}
	return &Parts{errs: list, names: map[string]int{}}, &Parts{errs: list, names: map[string]int{}}, func() error {
		list.mu.Lock()
		defer list.mu.Unlock()
		return errors.Join(list.all...)
	}
}

// Go runs a part. If it ends before ctx, that is an error.
func (p *Parts) Go(ctx context.Context, name string, run func(context.Context) error) {
	p.count(name, 1)
	p.running.Go(func() {
		defer p.count(name, -1)
		err := run(ctx)
		if err == nil && ctx.Err() == nil {
			err = errors.New("Run has ended")
		}
		if err != nil {
			p.Fail(fmt.Errorf("%s: %w", name, err))
		}
	})
}

func (p *Parts) count(name string, by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names[name] += by; p.names[name] == 0 {
		delete(p.names, name)
	}
}

// Wait waits for the parts, which have been told to end, and returns the names of those that still
// run when over closes.
func (p *Parts) Wait(over <-chan struct{}) (left []string) {
	if Within(over, &p.running) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.names))
}

// Within waits for a group until over closes, and reports whether all of it has ended.
func Within(over <-chan struct{}, group *sync.WaitGroup) bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		group.Wait()
	}()
	select {
	case <-ended:
		return true
	case <-over:
		return false
	}
}

// Fail is an error of all parts.
func (p *Parts) Fail(err error) {
	p.errs.mu.Lock()
	defer p.errs.mu.Unlock()
	p.errs.all = append(p.errs.all, err)
	p.errs.end(err)
}
