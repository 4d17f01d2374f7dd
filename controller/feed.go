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

// Feed brings the keys of changes. [For], [From] and [Moments] make one.
type Feed[K comparable] struct {
	name  string
	ready func(maxStaleness time.Duration) error
	all   func(add func([]K)) // the keys of all objects
	// run adds keys until ctx ends. After the initial ones it calls told, with a function that says
	// whether the keys of all changes have been added that a reader of the copy can have seen.
	run func(ctx context.Context, c *Controller[K], told func(caughtUp func() bool)) error
}

func (f Feed[K]) describe(i int) string { return fmt.Sprintf("feed %d (%s)", i+1, f.name) }

// For reconciles each object of a copy by its own key, which [store.Key] makes. A copy is an
// [informer.Informer], an [informer.Lease] or an [informer.Union].
func For[T store.Object](copy join.Collection[T]) Feed[string] {
	return From(copy, func(obj T) []string { return []string{store.KeyOf(obj)} })
}

// From reconciles any keys of each object: at a change, those of the object before and after it.
// keys is called on one goroutine, and its result must depend on the object alone:
// package enqueue has Owner and Label. A copy that is only read has a feed without keys.
func From[T store.Object, K comparable](copy join.Collection[T], keys func(obj T) []K) Feed[K] {
	name := reflect.TypeFor[T]().String()
	if null.Is(copy) || keys == nil {
		panic(fmt.Sprintf("controller: a feed of %s: the copy or its function is nil", name))
	}
	return Feed[K]{name: name, ready: copy.Ready,
		all: func(add func([]K)) {
			for _, obj := range copy.Snapshot().All() {
				add(keys(obj))
			}
		},
		run: func(ctx context.Context, c *Controller[K], told func(func() bool)) error {
			// A deletion may come with a newer state than the one told last.
			last := map[string]handled.Trace[K]{}
			h, err := copy.AddHandler(func(e informer.Event[T]) {
				before, now := last[e.Key], handled.Trace[K]{}
				if delete(last, e.Key); e.Type != informer.Deleted {
					now = handled.Trace[K]{Keys: keys(e.New)}
				}
				if len(now.Keys) > 0 {
					if c.file != nil {
						now.Version = handled.Of(name, e.New)
					}
					last[e.Key] = now
				}
				c.changed(before, now, !e.Initial && e.Type != informer.Redelivered)
			}, informer.WithName(c.name()))
			if err != nil {
				return err
			}
			defer h.Remove()
			if err := h.WaitSynced(ctx); err == nil {
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
	return Feed[K]{name: "a view", ready: view.Ready, all: func(func([]K)) {},
		run: func(ctx context.Context, c *Controller[K], told func(func() bool)) error {
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

// changed takes a change. With a checkpoint, Run queues the keys that are due when the loop starts.
func (c *Controller[K]) changed(before, now handled.Trace[K], urgent bool) {
	c.file.Change(before, now)
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
