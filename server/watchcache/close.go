package watchcache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Close ends the cache, and returns once no goroutine of its own is left. Watches and waits under
// way, and all later reads, fail with a 503; later writes fail, and change nothing.
// [Cache.Snapshot] stays readable. Close may be called more than once. Its caller is the cache's
// owner, which no longer serves it.
func (c *Cache[T]) Close() {
	c.work.stop()
	c.SendBookmarks() // all watchers look, and find the cache closed
	c.changed.Broadcast()
	c.work.running.Wait()
}

// closed is the error of a read, once the cache is closed.
func (c *Cache[T]) closed() error {
	if !c.work.over.Load() {
		return nil
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the cache of %s is closed", c.kind.GroupResource()))
}

// writable is the error of a write, once the cache is closed.
func (c *Cache[T]) writable(op string) error {
	if !c.work.over.Load() {
		return nil
	}
	return fmt.Errorf("watchcache: %s: the cache of %s is closed", op, c.kind.GroupResource())
}

// work owns the goroutines of a cache.
type work struct {
	over    atomic.Bool     // each look of a watcher reads it: Err of a context may take a lock
	ctx     context.Context // ends with the cache
	cancel  context.CancelFunc
	mu      sync.Mutex // no goroutine begins while it is held
	running sync.WaitGroup
}

func newWork() *work {
	w := &work{}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// begin runs do in a goroutine. It is false, and do is not run, if the cache is closed.
func (w *work) begin(do func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over.Load() {
		return false
	}
	w.running.Go(do)
	return true
}

// stop has no goroutine begin any more, and ends the context of the others.
func (w *work) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over.Store(true)
	w.cancel()
}
