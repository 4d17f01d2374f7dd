package watchcache

import "github.com/tributary-go/tributary/listwatch"

// OnChange has f told of every change that a write makes, in order, before any watcher sees it. It
// misses nothing, unlike a watch, which a small window or [Cache.Compact] can end. A Replace is not
// a write. f runs under the cache's locks: it must return soon and must not call the cache. Call
// OnChange once, before the first write.
func (c *Cache[T]) OnChange(f func(listwatch.Event[T])) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.observer = f
}

// observeLocked tells the observer of a change, as a watcher of the whole collection sees it.
func (c *Cache[T]) observeLocked(ch *change[T]) {
	if c.observer == nil {
		return
	}
	if e, ok := ch.seenBy(&selection[T]{cache: c}); ok {
		c.observer(e.Event)
	}
}
