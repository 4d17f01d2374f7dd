package watchcache

import (
	"context"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tributary-go/tributary/server/internal/entrance"
)

// Close ends the cache, and returns once no goroutine of its own is left. Watches and waits under
// way, and all later reads, fail with a 503; later writes fail, and change nothing.
// [Cache.Snapshot] stays readable. Close may be called more than once. Its caller is the cache's
// owner, which no longer serves it.
func (c *Cache[T]) Close() {
	c.work.over.Store(true)
	c.work.cancel()
	c.SendBookmarks() // all watchers look, and find the cache closed
	c.changed.Broadcast()
	_ = c.work.running.Wait(context.Background()) // which has no end
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
	running entrance.Entrance
}

func newWork() *work {
	w := &work{}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// begin runs do in a goroutine. It is false, and do is not run, if the cache is closed.
func (w *work) begin(do func()) bool { return !w.over.Load() && w.running.Go(do) }
