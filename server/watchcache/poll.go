package watchcache

import (
	"context"
	"time"
)

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
		if w.park(ctx, ready) {
			return nil, true, nil
		}
	}
}

// look is what a watcher does before it waits. waits means that nothing is there, and that the
// watch goes on.
func (w *Watcher[T]) look(ctx context.Context) (events []Delivery[T], waits bool, err error) {
	if !w.counted {
		w.counted = true
		w.cache.stats.watchers.Add(1)
	}
	if !w.placed {
		if err := w.place(ctx); err != nil || !w.placed {
			return nil, false, err
		}
	}
	if w.lane.Load() == nil && !w.keep.everything() {
		w.cache.join(w)
	}
	w.askAgain()
	for ctx.Err() == nil {
		if events := w.initialEvents(); len(events) > 0 {
			return events, false, nil
		}
		called, complete := w.called(ctx) || w.timed() && w.timer == nil, uint64(0)
		if called {
			if w.over(time.Now()) {
				return nil, false, nil
			}
			complete = w.cache.current() // before reading: what is read then is complete up to it
		}
		more, err := w.read()
		switch {
		case err != nil:
			return nil, false, err
		case len(w.events) > 0:
			w.take()
			return w.events, false, nil
		case more:
			continue // nothing of it was for us
		}
		if called {
			if events := w.answerCall(complete); len(events) > 0 {
				return events, false, nil
			}
		}
		return nil, true, nil
	}
	return nil, false, nil
}

// place begins at the starting state, once the cache has it. It does nothing if ctx ends first.
func (w *Watcher[T]) place(ctx context.Context) error {
	present, err := w.startingState(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	w.placeAt(present)
	return nil
}

// park has ready called when there may be something to do. It is false if there is something
// already.
func (w *Watcher[T]) park(ctx context.Context, ready func()) bool {
	w.giveBack()
	if w.unwatch == nil && ctx.Done() != nil {
		w.unwatch = context.AfterFunc(ctx, w.unpark)
	}
	w.ready = ready
	return w.lane.Load().park(ctx, w)
}
