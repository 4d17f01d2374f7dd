package watchcache

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
)

// wantsState reports whether a watch from version begins with the state as Added events.
func (r Request) wantsState(version uint64) bool {
	if r.SendInitialEvents != nil {
		return *r.SendInitialEvents
	}
	return version == 0
}

// Watch implements [listwatch.ListerWatcher]. The position is fixed by the call: the watch sees
// every write after it. No goroutine is started, and nothing needs to be closed: a watch that is
// not ranged over costs its memory alone.
//
// Ranging waits for events. It ends without an error when ctx ends or the timeout is over, and
// after the one error that it yields: 410 Expired when the watcher has fallen out of the window, or
// ResourceVersion is from before it; 400 and 422 for bad options; 429 while the cache is empty; 504
// when the state that SendInitialEvents asks for is not reached in time. Errors are API status
// errors. A second range goes on where the first one ended. It is for one goroutine at a time.
func (c *Cache[T]) Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[listwatch.Event[T], error] {
	var w *Watcher[T]
	r, err := requestOf(options)
	if err == nil {
		w, err = c.Watcher(r)
	}
	var pending []Delivery[T] // not yet yielded
	return func(yield func(listwatch.Event[T], error) bool) {
		if err == nil {
			defer w.Close()
		}
		for err == nil && ctx.Err() == nil {
			if len(pending) == 0 {
				if pending, err = w.Next(ctx); err == nil && len(pending) == 0 {
					return
				}
				continue
			}
			e := pending[0]
			pending = pending[1:]
			if !yield(e.Event, nil) {
				return
			}
		}
		if err != nil {
			yield(listwatch.Event[T]{}, err)
		}
	}
}
