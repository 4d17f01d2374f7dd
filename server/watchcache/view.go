package watchcache

import (
	"context"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// view is a state with the version up to which it is complete.
type view[T store.Object] struct {
	present store.Snapshot[T]
	undo    map[objectKey]T // the objects that stood where others stand now; the zero T: none
	version uint64
	next    uint64 // the position in the window from which the changes since then are seen
	early   bool   // changes up to version may still come: they add up to nothing
}

type objectKey struct{ namespace, name string }

func keyOf[T store.Object](obj T) objectKey { return objectKey{obj.GetNamespace(), obj.GetName()} }

// undone reports whether a present object is not that of the view.
func (v view[T]) undone(obj T) bool {
	if v.undo == nil {
		return false
	}
	_, ok := v.undo[keyOf(obj)]
	return ok
}

// current is the version up to which the cache is complete: that of its last write, or of the
// server's last write to any collection.
func (c *Cache[T]) current() uint64 {
	// The server's count comes first: the writes that it counts are in the cache already.
	counted := uint64(0)
	if c.revision != nil {
		counted = c.revision.current.Load()
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return max(counted, c.version)
}

// latest is the newest state that is known. It fails while the cache has never been filled.
func (c *Cache[T]) latest() (view[T], error) { return c.look(true) }

// copied is the state that the changes add up to. It fails while the cache has never been filled.
func (c *Cache[T]) copied() (view[T], error) { return c.look(false) }

func (c *Cache[T]) look(compared bool) (view[T], error) {
	counted := uint64(0)
	if c.revision != nil {
		counted = c.revision.current.Load()
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if err := c.closed(); err != nil {
		return view[T]{}, err
	}
	if !c.filled {
		return view[T]{}, notFilled(c.kind.GroupResource())
	}
	if n := len(c.states); compared && n > 0 && c.states[n-1].next >= c.window.First() {
		return c.states[n-1], nil
	}
	return view[T]{present: c.present(), version: max(counted, c.version), next: c.window.Next()}, nil
}

// present is the content up to version; mu is held.
func (c *Cache[T]) present() store.Snapshot[T] {
	if c.replacing != nil {
		return *c.replacing
	}
	return c.objects.Snapshot()
}

// exactly is the state at version: known by comparison, or the present without the changes since.
// It fails with 410 if the window no longer knows them.
func (c *Cache[T]) exactly(ctx context.Context, version uint64) (view[T], error) {
	now, err := c.await(ctx, c.config.freshWait, version, func() (view[T], error) {
		if compared, ok := c.compared(version); ok {
			return compared, nil
		}
		return c.copied()
	})
	if err != nil || now.early {
		return now, err
	}
	c.mu.RLock()
	position, ok := c.window.since(version)
	v := view[T]{present: c.present(), undo: map[objectKey]T{}, version: version, next: c.window.Next()}
	floor := c.window.floor
	c.mu.RUnlock()
	for ; ok && position < v.next; position++ {
		var since *change[T]
		if since, ok = c.window.Read(position); ok {
			v.takeBack(since)
		}
	}
	if !ok {
		return view[T]{}, tooOld(version, floor)
	}
	return v, nil
}

// takeBack undoes a change, unless an older change of the object is undone already.
func (v *view[T]) takeBack(c *change[T]) {
	obj := c.old
	if pointer.None(obj) {
		obj = c.now
	}
	key := keyOf(obj)
	if _, undone := v.undo[key]; !undone {
		v.undo[key] = c.old
	}
}

// awaitWriter returns once the write under way has entered all of its changes.
func (c *Cache[T]) awaitWriter() {
	c.mu.RLock()
	defer c.mu.RUnlock()
}

// arrivedAt reports whether the changes up to a version of the future have come, and whether a
// Replace may have skipped that version.
func (c *Cache[T]) arrivedAt(version uint64) (arrived, skipped bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.version >= version, c.window.skipped(version)
}

// floor is the oldest version from which every change is held.
func (c *Cache[T]) floor() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.window.floor
}
