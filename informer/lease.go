package informer

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/tributary-go/tributary/store"
)

// Lease is a share in an informer of a [Set]. It has the methods of the [Informer] except Run,
// which is [Set.Run]. Close it when it is no longer needed, and drop the reference: it holds the
// copy's memory.
type Lease[T store.Object] struct {
	*shared[T]

	set    *Set
	leased *leased
	close  func() // closes only once

	mu sync.RWMutex // read-locked while a handler is added; Close locks it
	// closed ends with Close. It is a context so that the contexts of loops can end with it.
	closed context.Context
}

var errClosed = errors.New("informer: add a handler: the lease is closed")

func newLease[T store.Object](s *Set, c *leased, i *Informer[T]) *Lease[T] {
	l := &Lease[T]{shared: i.shared, set: s, leased: c}
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

// AddHandler adds a handler that ends with the lease, and fails on a closed lease; otherwise it is
// [Informer.AddHandler].
func (l *Lease[T]) AddHandler(handle func(Event[T]), optionList ...HandlerOption) (*Handler[T], error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed.Err() != nil {
		return nil, errClosed
	}
	return l.shared.AddHandler(handle, l.own(optionList)...)
}

// AddMetaHandler is [Informer.AddMetaHandler] for a handler that ends with the lease.
func (l *Lease[T]) AddMetaHandler(handle func(Event[store.Object]), optionList ...HandlerOption) (*Handler[T], error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed.Err() != nil {
		return nil, errClosed
	}
	return l.shared.AddMetaHandler(handle, l.own(optionList)...)
}

// own lets a handler end with the lease.
func (l *Lease[T]) own(optionList []HandlerOption) []HandlerOption {
	return append(optionList[:len(optionList):len(optionList)], func(o *handlerOptions) { o.owner = l })
}

// Events is [Informer.Events], but also ends with the lease.
func (l *Lease[T]) Events(ctx context.Context, optionList ...HandlerOption) iter.Seq[Event[T]] {
	return func(yield func(Event[T]) bool) {
		if l.closed.Err() != nil {
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(l.closed, cancel)()
		l.shared.Events(ctx, optionList...)(yield)
	}
}

// WaitSynced is [Informer.WaitSynced], but also fails once the lease is closed.
func (l *Lease[T]) WaitSynced(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.closed, func() { cancel(errLeaseClosed) })()
	return l.shared.WaitSynced(ctx)
}

// Ready is [Informer.Ready]. A closed lease is not ready.
func (l *Lease[T]) Ready(maxStaleness time.Duration) error {
	if l.closed.Err() != nil {
		return errLeaseClosed
	}
	return l.shared.Ready(maxStaleness)
}

var errLeaseClosed = errors.New("the lease is closed")

// Verify compares the leased copy with the server; see [Informer.Verify].
func (l *Lease[T]) Verify(ctx context.Context) (Drift, error) { return l.verifyAndNote(ctx) }

// Done is closed once the informer has ended: with the last lease, with the set, or by a failure,
// which Err then returns.
func (l *Lease[T]) Done() <-chan struct{} { return l.leased.ended }

// Err returns why the informer ended by itself, such as a final error under
// [reflector.WithFinalErrors]. It is nil while the informer runs, or if leases or the set ended it.
// After a failure, the next [Acquire] makes a new informer.
func (l *Lease[T]) Err() error {
	if l.leased.hasEnded() {
		return l.leased.err
	}
	return nil
}

// Close returns the share. It ends the handlers that were added through this lease, and waits until
// each has returned for the last time. Loops over Events end with their present turn; Close does
// not wait for them.
//
// The last Close of a copy also ends its informer, and waits for that. The watch is then closed,
// and the memory is freed with the last reference to the lease. Close may be called more than once.
// A handler of the same copy must call "go lease.Close()": a plain call would wait for the handler
// itself.
func (l *Lease[T]) Close() { l.close() }
