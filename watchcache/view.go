package watchcache

import (
	"context"
	"time"

	"github.com/tributary-go/tributary/store"
)

// view is a state with the version up to which it is complete.
type view[T store.Object] struct {
	state   store.Snapshot[T]
	version uint64
	next    uint64 // the position in the window from which the changes since then are seen
}

// current is the version up to which the cache is complete: that of its last write, or of the
// server's last write to any collection.
func (c *Cache[T]) current() uint64 {
	// The server's count comes first: what it counts is in the cache already.
	counted := uint64(0)
	if c.revision != nil {
		counted = c.revision.current.Load()
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return max(counted, c.version)
}

// latest is the present state. It fails while the cache has never been filled.
func (c *Cache[T]) latest() (view[T], error) {
	counted := uint64(0)
	if c.revision != nil {
		counted = c.revision.current.Load()
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if !c.filled {
		return view[T]{}, notFilled(c.resource.GroupResource())
	}
	return view[T]{state: c.state, version: max(counted, c.version), next: c.window.Next()}, nil
}

// notOlderThan is the present state once it has reached version. It waits a while for that, then
// fails with 504.
func (c *Cache[T]) notOlderThan(ctx context.Context, version uint64) (view[T], error) {
	var patience <-chan time.Time
	for {
		changed := c.changed.Wait()
		var counted <-chan struct{}
		if c.revision != nil {
			counted = c.revision.changed.Wait()
		}
		now, err := c.latest()
		if err != nil || now.version >= version {
			return now, err
		}
		if patience == nil {
			timer := time.NewTimer(c.config.freshWait)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case <-changed:
		case <-counted:
		case <-patience:
			return view[T]{}, tooLarge(version, now.version)
		case <-ctx.Done():
			return view[T]{}, ctx.Err()
		}
	}
}

// exactly is the state at version; it fails with 410 when the window no longer knows it.
func (c *Cache[T]) exactly(ctx context.Context, version uint64) (view[T], error) {
	if _, err := c.notOlderThan(ctx, version); err != nil {
		return view[T]{}, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	state, ok := c.window.stateAt(version)
	if !ok {
		return view[T]{}, tooOld(version, c.window.floor)
	}
	return view[T]{state: state, version: version}, nil
}
