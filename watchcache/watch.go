package watchcache

import (
	"context"
	"iter"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WatchOptions says what to watch, from where, and for how long. They mean what they mean in metav1.ListOptions.
type WatchOptions struct {
	Selection

	// ResourceVersion is where to start: after that version; or, when it is empty or "0", with the present state
	// as Added events. A version that has not been reached is waited for in silence.
	ResourceVersion string
	// ResourceVersionMatch must be NotOlderThan with SendInitialEvents, and empty without.
	ResourceVersionMatch metav1.ResourceVersionMatch
	// SendInitialEvents (KEP-3157) starts with the state, no older than ResourceVersion, as Added events, and a
	// bookmark that says where they end. False starts without them, at the present when there is no version.
	SendInitialEvents *bool
	// Bookmarks asks for Bookmark events: periodically, and two seconds before Timeout. The one after the initial
	// events needs it too.
	Bookmarks bool
	// Timeout ends the watch without an error. Zero means that only the context ends it.
	Timeout time.Duration
}

// version checks the options against the API server's rules (422) and reads the version; zero means any.
func (o WatchOptions) version() (uint64, error) {
	errs := validation.ValidateListOptions(&internalversion.ListOptions{
		Watch: true, ResourceVersion: o.ResourceVersion,
		ResourceVersionMatch: o.ResourceVersionMatch, SendInitialEvents: o.SendInitialEvents,
	}, true)
	if len(errs) > 0 {
		return 0, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	return readVersion(o.ResourceVersion)
}

// readVersion reads the version that a client sent: 400 for what is no number, zero for none.
func readVersion(resourceVersion string) (uint64, error) {
	if resourceVersion == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0, badRequest("invalid resource version: %q is not a decimal number", resourceVersion)
	}
	return version, nil
}

// wantsState reports whether a watch from version begins with the state as Added events.
func (o WatchOptions) wantsState(version uint64) bool {
	if o.SendInitialEvents != nil {
		return *o.SendInitialEvents
	}
	return version == 0
}

// Watch follows the collection. The position is fixed by the call: what is written after it will be seen. No
// goroutine is started, and nothing needs to be closed: a watcher that nobody ranges over costs its memory alone.
//
// Ranging waits for events. It ends without an error when ctx ends or the timeout is over, and after the one error
// that it yields: 410 Expired when the watcher has fallen out of the window, or ResourceVersion is from before it;
// 400 and 422 for bad options; 429 while the cache is empty; 504 when the state that SendInitialEvents asks for is
// not reached in time. Errors are API status errors. A second range goes on where the first one ended. It is for
// one goroutine at a time.
func (c *Cache[T]) Watch(ctx context.Context, options WatchOptions) iter.Seq2[Event[T], error] {
	w, err := c.watcher(options)
	return func(yield func(Event[T], error) bool) {
		for err == nil && ctx.Err() == nil {
			if len(w.pending) == 0 {
				if w.pending, err = w.next(ctx); err == nil && len(w.pending) == 0 {
					return
				}
				continue
			}
			e := w.pending[0]
			w.pending = w.pending[1:]
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(Event[T]{}, err)
		}
	}
}
