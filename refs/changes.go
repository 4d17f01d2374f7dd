package refs

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// Change is a change of one object, as one reader sees it.
type Change[T store.Object] struct {
	// Name is the object.
	Name types.NamespacedName
	// Old is the state that the reader was told last; nil if there was none. New is the state now;
	// nil if the object was deleted. An object that was deleted and created again has another UID.
	// Objects are shared and read-only.
	Old, New T
	// Owners refer to the object now, in order. Without owners, New is nil, and the object may
	// exist: nothing refers to it.
	Owners []types.UID
}

// Changes yields first the state of each object that exists, and then the changes, until ctx or
// Run ends. Range over it once.
//
// A reader that keeps up is told each change that the watches bring. For a reader that falls
// behind, the changes of a name are merged: a change leads from the state that it was told last to
// the present one. So nothing is queued but one state for each changed name. Names have no order
// among each other.
//
// If a name loses its last owner, its object is told as gone, without owners: the reader is told
// nothing more of it. If the name gets an owner again, it begins anew.
func (r *Refs[T]) Changes(ctx context.Context) iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		reader := r.newReader()
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.readers, reader)
		}()
		for {
			change, ok := r.next(ctx, reader)
			if !ok || !yield(change) {
				return
			}
		}
	}
}

// reader is one loop over Changes. The lock of Refs guards it.
type reader[T store.Object] struct {
	// told is the state before the change that waits, by name; order has the names in order.
	told  map[*entry[T]]T
	order []*entry[T]
	wake  chan struct{} // has room for one
}

func (r *Refs[T]) newReader() *reader[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	reader := &reader[T]{told: map[*entry[T]]T{}, wake: make(chan struct{}, 1)}
	r.readers[reader] = struct{}{}
	var none T
	for _, e := range r.names {
		if e.known && !pointer.None(e.obj) {
			reader.note(e, none)
		}
		if e.phase == idle {
			r.follow(e)
		}
	}
	return reader
}

// note notes that a state was changed.
func (d *reader[T]) note(e *entry[T], old T) {
	if _, waits := d.told[e]; waits {
		return
	}
	d.told[e] = old
	d.order = append(d.order, e)
	select {
	case d.wake <- struct{}{}:
	default: // it is awake
	}
}

// next waits for the next change.
func (r *Refs[T]) next(ctx context.Context, d *reader[T]) (Change[T], bool) {
	for {
		if change, ok := r.pending(d); ok {
			return change, ctx.Err() == nil
		}
		select {
		case <-d.wake:
		case <-ctx.Done():
			return Change[T]{}, false
		case <-r.over.Done():
			return Change[T]{}, false
		}
	}
}

// pending takes the first change that waits, and is one.
func (r *Refs[T]) pending(d *reader[T]) (Change[T], bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(d.order) > 0 {
		e := d.order[0]
		d.order[0], d.order = nil, d.order[1:]
		old := d.told[e]
		delete(d.told, e)
		if !same(old, e.obj) {
			return Change[T]{Name: e.name, Old: old, New: e.obj, Owners: e.ownerList()}, true
		}
	}
	d.order = nil
	return Change[T]{}, false
}
