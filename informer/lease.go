package informer

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/tributary-go/tributary/store"
)

// Lease is a share in an informer of a [Set]. It has the methods of the [Informer], but that Run is the set's to call.
// Close it when it is no longer needed, and drop it then, since it holds the copy's memory.
type Lease[T store.Object] struct {
	*Informer[T]

	set    *Set
	leased *leased
	close  func() // once

	mu sync.RWMutex // held while a handler is added, and by Close
	// closed ends with Close. It is a context so that those of loops can be joined with it.
	closed context.Context
}

// Run fails: [Set.Run] runs what is leased.
func (l *Lease[T]) Run(context.Context) error { return errLeased }

var errLeased = errors.New("informer: a lease is run by its set: call Set.Run")

var errClosed = errors.New("informer: add a handler: the lease is closed")

func newLease[T store.Object](s *Set, c *leased, i *Informer[T]) *Lease[T] {
	l := &Lease[T]{Informer: i, set: s, leased: c}
	var end context.CancelFunc
	l.closed, end = context.WithCancel(context.Background())
	l.close = sync.OnceFunc(func() {
		l.mu.Lock()
		end()
		l.mu.Unlock()
		i.removeOwned(l)
		s.release(c)
	})
	return l
}

// AddHandler adds a handler that ends with the lease; otherwise it is as [Informer.AddHandler]. It fails on a lease that
// is closed.
func (l *Lease[T]) AddHandler(handle func(Event[T]), optionList ...HandlerOption) (*Handler[T], error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed.Err() != nil {
		return nil, errClosed
	}
	return l.Informer.AddHandler(handle, append(optionList[:len(optionList):len(optionList)], func(o *handlerOptions) { o.owner = l })...)
}

// Events yields what a handler would be told, as [Informer.Events] does, and ends with the lease, too.
func (l *Lease[T]) Events(ctx context.Context, optionList ...HandlerOption) iter.Seq[Event[T]] {
	return func(yield func(Event[T]) bool) {
		if l.closed.Err() != nil {
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(l.closed, cancel)()
		l.Informer.Events(ctx, optionList...)(yield)
	}
}

// WaitSynced is as [Informer.WaitSynced], and fails when the lease is closed.
func (l *Lease[T]) WaitSynced(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.closed, func() { cancel(errLeaseClosed) })()
	return l.Informer.WaitSynced(ctx)
}

var errLeaseClosed = errors.New("the lease is closed")

// Done is closed once the informer has ended: with the last lease, with the set, or by a failure, which Err then says.
func (l *Lease[T]) Done() <-chan struct{} { return l.leased.ended }

// Err is why the informer ended by itself, such as a final error where [reflector.WithFinalErrors] was given; nil while
// it runs, and where it was ended. A new [Acquire] then begins anew.
func (l *Lease[T]) Err() error {
	if l.leased.hasEnded() {
		return l.leased.err
	}
	return nil
}

// Close gives the share back. It ends the handlers that were added through this lease and waits until each has returned
// for the last time; loops over Events end with their present turn, and are not waited for. The last lease of a copy ends
// its informer and waits for that: the watch is gone then, and the memory with the last reference to the lease. It may be
// called more than once. Called by a handler of the same copy, it would wait for ever: say "go lease.Close()" there.
func (l *Lease[T]) Close() { l.close() }
