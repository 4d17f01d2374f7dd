package apiserver

import (
	"context"
	"sync"

	"github.com/tributary-go/tributary/internal/signal"
)

// entrance counts what is under way, and closes. The zero value is open.
type entrance struct {
	mu     sync.Mutex // guards the next fields
	count  int        // entered, and not left
	closed bool
	left   signal.Signal
}

// enter counts a request or a watch, which leaves later. It is false once wait has been called.
func (e *entrance) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.count++
	}
	return !e.closed
}

// run has do run in a goroutine, unless the entrance is closed.
func (e *entrance) run(do func()) {
	if e.enter() {
		go func() {
			defer e.leave()
			do()
		}()
	}
}

// leave takes back enter.
func (e *entrance) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count--
	e.left.Broadcast()
}

// wait closes the entrance, and waits until all have left. It returns the error of ctx if that ends
// first.
func (e *entrance) wait(ctx context.Context) error {
	for {
		left := e.left.Wait()
		e.mu.Lock()
		e.closed = true
		count := e.count
		e.mu.Unlock()
		if count == 0 {
			return nil
		}
		select {
		case <-left:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
