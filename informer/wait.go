package informer

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// WaitFor blocks until the store holds obj, as a write returned it, or a later state: a newer
// version, its deletion, or an object created in its place. A snapshot taken afterwards includes
// the write (read your own writes).
//
// Resource versions are compared (KEP-5504): the store holds a write once it is complete up to the
// write's version. If the server's versions cannot be compared, WaitFor waits for one of three
// things: that very version or the object's deletion among the changes in the ring ([WithRing]), or
// a list that began after the call.
//
// It blocks until ctx ends, and the error then says which version the store has; or until Run ends,
// with [ErrStopped]. It fails at once if obj cannot belong to the collection:
//
//   - Its kind is another, if objects carry their kind (unstructured and metadata objects; Go types
//     prove it otherwise).
//   - Its namespace is not the one that a [Set]'s copy keeps.
//   - It has a namespace and the held objects have none, or the reverse.
//
// WaitFor does not evaluate selectors. If they exclude obj, it returns with the next later event or
// bookmark. The result is meaningless for an object of another cluster.
func (i *shared[T]) WaitFor(ctx context.Context, obj T) error {
	w, err := waitFor(i, "wait for", obj)
	if err != nil {
		return err
	}
	return wait(ctx, i, w.what, func(complete store.Version) bool {
		if held, ok := i.objects.Entries().Get(w.key); ok && held.GetUID() == obj.GetUID() {
			if store.VersionOf(held).Reaches(w.version) {
				return true // in a union, other members may lag behind
			}
		}
		return w.reached(i, complete)
	})
}

// WaitForDeletion blocks until the store no longer holds obj, by its UID: its key is empty, or has
// another object. obj is any version of it that the server returned, and the store must have
// reached that version. Otherwise it is as [Informer.WaitFor].
func (i *shared[T]) WaitForDeletion(ctx context.Context, obj T) error {
	w, err := waitFor(i, "wait for the deletion of", obj)
	if err != nil {
		return err
	}
	return wait(ctx, i, w.what, func(complete store.Version) bool {
		if held, ok := i.objects.Entries().Get(w.key); ok && held.GetUID() == obj.GetUID() {
			return false
		}
		return w.reached(i, complete)
	})
}

// WaitForResourceVersion blocks until the store is complete up to resourceVersion, as a write or a
// list of the same resource returned it. In a quiet collection it takes until the server's next
// bookmark, about a minute.
//
// If versions cannot be compared (KEP-5504), it blocks until the store is at that very version:
// prefer [Informer.WaitFor] then. Errors are those of WaitFor.
func (i *shared[T]) WaitForResourceVersion(ctx context.Context, resourceVersion string) error {
	if resourceVersion == "" || resourceVersion == "0" {
		return fmt.Errorf("informer: wait for resource version %q: it names no state: "+
			"give the version of a write or a list", resourceVersion)
	}
	return wait(ctx, i, fmt.Sprintf("wait for resource version %q", resourceVersion), func(complete store.Version) bool {
		return complete.Reaches(store.Version(resourceVersion))
	})
}

// WaitUntil blocks until condition holds for the object under key, which [store.Key] makes, and
// returns that object. The condition is asked for the present state, and again after changes of the
// collection: held is false while there is no such object, so that a condition can ask for that
// too. A state that lasts for an instant alone may not be seen.
//
// condition runs on the caller's goroutine. It blocks until ctx ends, and the error then says
// whether the object was there and which version the store has; or until Run ends, with
// [ErrStopped].
func (i *shared[T]) WaitUntil(ctx context.Context, key string, condition func(obj T, held bool) bool) (obj T, err error) {
	if condition == nil {
		return obj, fmt.Errorf("informer: wait until %s: the condition is nil", key)
	}
	held := false
	err = wait(ctx, i, "wait until "+key+" satisfies a condition", func(store.Version) bool {
		obj, held = i.objects.Get(key)
		return condition(obj, held)
	})
	if err != nil && !held {
		err = fmt.Errorf("%w, without this object", err)
	}
	return obj, err
}

// wait blocks until done holds for the present state and a version up to which that state is
// complete.
func wait[T store.Object](ctx context.Context, i *shared[T], what string, done func(complete store.Version) bool) error {
	for {
		changed := i.ring.moved.Wait()
		complete, owner := i.complete() // read before the state, which may then be newer
		if done(store.Version(complete)) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("informer: %s: %w: %s is at version %q", what, context.Cause(ctx), owner, complete)
		case <-i.over.Done():
			return fmt.Errorf("informer: %s: %w at version %q", what, ErrStopped, complete)
		}
	}
}

// awaited is an object's version, and the wait for it.
type awaited[T store.Object] struct {
	obj       T
	key, what string
	version   store.Version
	listing   uint64 // the last list that had begun when the wait did
}

func waitFor[T store.Object](i *shared[T], what string, obj T) (*awaited[T], error) {
	switch {
	case pointer.None(obj):
		return nil, fmt.Errorf("informer: %s: %w", what, errNil)
	case obj.GetName() == "" || obj.GetResourceVersion() == "":
		return nil, fmt.Errorf("informer: %s %s: %w", what, store.KeyOf(obj), errNotWritten)
	}
	if err := checkKind(obj, i.one()); err != nil {
		return nil, fmt.Errorf("informer: %s %s: %w", what, store.KeyOf(obj), err)
	}
	if only := i.options.namespace; only != "" && obj.GetNamespace() != only {
		return nil, fmt.Errorf("informer: %s %s: this collection holds namespace %s only", what, store.KeyOf(obj), only)
	}
	w := &awaited[T]{obj: obj, key: store.KeyOf(obj), version: store.VersionOf(obj)}
	w.listing, _ = i.ring.lists()
	w.what = fmt.Sprintf("%s %s at version %q", what, w.key, w.version)
	return w, nil
}

var (
	errNil        = errors.New("the object is nil")
	errNotWritten = errors.New("it has no name or no resource version: give the object that the server returned")
)

// one is any object that is held, with its metadata; nil if there is none.
func (i *shared[T]) one() store.Object {
	for _, entry := range i.objects.Entries().Snapshot().All() {
		return entry.(store.Object)
	}
	return nil
}

// checkKind refuses an object of another kind or scope than an object that is held, as far as the
// two tell. held is nil if there is none.
func checkKind(obj, held store.Object) error {
	if held == nil {
		return nil
	}
	kind, holds := obj.GetObjectKind().GroupVersionKind().GroupKind(), held.GetObjectKind().GroupVersionKind().GroupKind()
	switch {
	case !kind.Empty() && !holds.Empty() && kind != holds:
		return fmt.Errorf("it is a %s, but this collection holds objects of kind %s", kind, holds)
	case obj.GetNamespace() == "" && held.GetNamespace() != "":
		return errors.New("it has no namespace, but this collection's objects have one")
	case obj.GetNamespace() != "" && held.GetNamespace() == "":
		return errors.New("it has a namespace, but this collection's objects have none")
	}
	return nil
}

// reached reports whether a store that is complete up to a version has the awaited one. Versions
// that cannot be compared are looked for among the changes.
func (w *awaited[T]) reached(i *shared[T], complete store.Version) bool {
	if complete == "" {
		return false // nothing has come yet
	}
	if _, comparable := complete.Compare(w.version); comparable {
		return complete.Reaches(w.version)
	}
	if held, ok := i.objects.Entries().Get(w.key); ok && store.VersionOf(held) == w.version {
		return true
	}
	if _, listed := i.ring.lists(); listed > w.listing {
		return true
	}
	return i.ring.holds(w.key, func(kind EventType, uid types.UID, version store.Version) bool {
		return uid == w.obj.GetUID() && (kind == Deleted || version == w.version)
	})
}
