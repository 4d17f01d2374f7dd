package controller

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/join"
	"github.com/tributary-go/tributary/internal/handled"
	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/store"
)

// Feed brings the keys of changes. [For], [From], [FromMeta] and [Moments] make one.
type Feed[K comparable] struct {
	name  string
	ready func(maxStaleness time.Duration) error
	all   func(add func([]K)) // the keys of all objects
	// version is that of the copy; empty if it has none.
	version func() store.Version
	// run adds keys until ctx ends. number is the feed's in Feeds, or negative. After the initial
	// keys it calls told, with a function that says whether the keys of all changes have been added
	// that a reader of the copy can have seen.
	run func(ctx context.Context, c *Controller[K], number int, told func(caughtUp func() bool)) error
}

func (f Feed[K]) describe(i int) string { return fmt.Sprintf("feed %d (%s)", i+1, f.name) }

// For reconciles each object of a copy by its own key, which [store.Key] makes. A copy is an
// [informer.Informer], an [informer.Lease] or an [informer.Union]. Of a copy at rest, nothing is
// decoded.
func For[T store.Object](copy join.Collection[T]) Feed[string] {
	own := func(key string, _ store.Object) []string { return []string{key} }
	f := newFeed(copy, own, join.Collection[T].AddMetaHandler)
	f.all = func(add func([]string)) {
		for key := range copy.Snapshot().Keys() {
			add([]string{key})
		}
	}
	return f
}

// From reconciles any keys of each object: at a change, those of the object before and after it.
// keys is called on one goroutine, and its result must depend on the object alone:
// package enqueue has Owner and Label. A copy that is only read has a feed without keys.
func From[T store.Object, K comparable](copy join.Collection[T], keys func(obj T) []K) Feed[K] {
	return newFeed(copy, ofObject(keys), join.Collection[T].AddHandler)
}

// FromMeta is [From] for keys that depend on the metadata alone, such as those of owners. Of a copy
// at rest, the metadata alone is decoded, except for [Controller.AddAll]:
//
//	controller.FromMeta(pods, enqueue.Owner[store.Object](replicaSets))
func FromMeta[T store.Object, K comparable](copy join.Collection[T], keys func(meta store.Object) []K) Feed[K] {
	return newFeed(copy, ofObject(keys), join.Collection[T].AddMetaHandler)
}

// ofObject is a function of an object alone; nil of nil.
func ofObject[E store.Object, K comparable](keys func(obj E) []K) func(key string, obj E) []K {
	if keys == nil {
		return nil
	}
	return func(_ string, obj E) []K { return keys(obj) }
}

// newFeed makes a feed of a copy, whose handlers that add adds are told objects in the form E.
func newFeed[T, E store.Object, K comparable](
	copy join.Collection[T], keys func(key string, obj E) []K,
	add func(join.Collection[T], func(informer.Event[E]), ...informer.HandlerOption) (*informer.Handler[T], error),
) Feed[K] {
	name := reflect.TypeFor[T]().String()
	if null.Is(copy) || keys == nil {
		panic(fmt.Sprintf("controller: a feed of %s: the copy or its function is nil", name))
	}
	return Feed[K]{name: name, ready: copy.Ready,
		version: func() store.Version { return store.Version(copy.Snapshot().ResourceVersion()) },
		all: func(add func([]K)) {
			for key, obj := range copy.Snapshot().All() {
				add(keys(key, any(obj).(E)))
			}
		},
		run: func(ctx context.Context, c *Controller[K], number int, told func(func() bool)) error {
			// A deletion may come with a newer state than the one told last.
			last := map[string]handled.Trace[K]{}
			h, err := add(copy, func(e informer.Event[E]) {
				before, now := last[e.Key], handled.Trace[K]{}
				if delete(last, e.Key); e.Type != informer.Deleted {
					now = handled.Trace[K]{Keys: keys(e.Key, e.New)}
				}
				if len(now.Keys) > 0 {
					if c.file != nil {
						now.Version, now.At = handled.Of(name, e.New), store.VersionOf(e.New)
					}
					last[e.Key] = now
				}
				c.change(number, before, now, !e.Initial && e.Type != informer.Redelivered)
			}, informer.WithName(c.name()))
			if err != nil {
				return err
			}
			defer h.Remove()
			if err = h.WaitSynced(ctx); err == nil {
				err = copy.WaitSynced(ctx) // it is a moment later, and nothing else tells the loop
			}
			if err == nil {
				told(h.CaughtUp)
			} else if ctx.Err() == nil {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-copy.Done():
				return informer.ErrStopped
			}
		},
	}
}

// Moments reconciles keys of a view. keys is called with each moment, as by [join.View.Run]. It
// keeps the moment for Reconcile, and returns the keys of its changes. A restart calls those of the
// first moment, with a checkpoint too.
func Moments[K comparable](view *join.View, keys func(now join.Moment) []K) Feed[K] {
	return Feed[K]{name: "a view", ready: view.Ready, all: func(func([]K)) {}, version: func() store.Version { return "" },
		run: func(ctx context.Context, c *Controller[K], _ int, told func(func() bool)) error {
			first := true
			return view.Run(ctx, func(now join.Moment) {
				if c.queue().Add(!first, keys(now)...); first {
					first = false
					told(func() bool { return true }) // a checkpoint does not count them
				}
			})
		},
	}
}

// change takes a change. With a checkpoint, Run queues the keys that are due when the loop starts.
func (c *Controller[K]) change(feed int, before, now handled.Trace[K], urgent bool) {
	c.file.Change(feed, before, now)
	if phase, _ := c.life.Now(); phase == Waiting && c.file != nil {
		return
	}
	c.queue().Add(urgent, now.Keys...)
	for _, key := range before.Keys {
		if !slices.Contains(now.Keys, key) {
			c.queue().Add(urgent, key)
		}
	}
}
