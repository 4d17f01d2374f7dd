// Package entrance counts what is under way in a server, and closes.
package entrance

import (
	"context"

	"k8s.io/apimachinery/pkg/util/waitgroup"
)

// Entrance counts requests and goroutines. The zero value is open; Wait closes it.
type Entrance struct{ group waitgroup.SafeWaitGroup }

// Enter counts one more, which calls Leave later. It is false once Wait has been called.
func (e *Entrance) Enter() bool { return e.group.Add(1) == nil }

// Leave takes back Enter.
func (e *Entrance) Leave() { e.group.Done() }

// Go runs do in a goroutine. It is false, and do is not run, once Wait has been called.
func (e *Entrance) Go(do func()) bool {
	entered := e.Enter()
	if entered {
		go func() {
			defer e.Leave()
			do()
		}()
	}
	return entered
}

// Wait closes the entrance, and waits until all have left. It returns the error of ctx if that ends
// first.
func (e *Entrance) Wait(ctx context.Context) error {
	empty := make(chan struct{})
	go func() {
		e.group.Wait()
		close(empty)
	}()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
