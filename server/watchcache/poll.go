package watchcache

import "context"

// Next waits for the next events. None and no error mean that the watch is over. The slice is valid
// until the next call. After an error, each further call returns it again. Calls of one watcher
// share a context.
func (w *Watcher[T]) Next(ctx context.Context) ([]Delivery[T], error) {
	if w.woken == nil {
		woken := make(chan struct{}, 1) // a function of this alone: to call it touches no watcher
		w.woken, w.notify = woken, func() { woken <- struct{}{} }
	}
	for {
		events, waits, err := w.Poll(ctx, w.notify)
		if !waits {
			return events, err
		}
		<-w.woken // also when ctx ends
	}
}

// Poll is [Watcher.Next] for a caller that does not wait, so that a watcher without events needs no
// goroutine. It returns the next events if there are some. Otherwise waits is true, and ready is
// called once: when there may be something, or when ctx ends. No events, no wait and no error mean
// that the watch is over. Only the state that a watcher begins with is waited for, as Next does.
//
// ready may be called before Poll returns, and under the cache's locks: it must not block nor call
// the cache. Have it start a goroutine, or send to a channel with room. The watcher belongs to
// ready's caller from then on. Calls of one watcher share a context; Next may follow.
func (w *Watcher[T]) Poll(ctx context.Context, ready func()) (events []Delivery[T], waits bool, err error) {
	for {
		if events, waits, err = w.look(ctx); !waits {
			return events, false, err
		}
		w.giveBack()
		if w.ready = ready; w.lane.Load().park(ctx, w) {
			return nil, true, nil
		}
	}
}

// unpark makes the watcher look, for a reason that is not a change. Set the reason first. It is
// safe at any time.
func (w *Watcher[T]) unpark() {
	if l := w.lane.Load(); l != nil {
		l.unpark(w)
	}
}
