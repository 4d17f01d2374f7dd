package watchcache

import "github.com/tributary-go/tributary/listwatch"

// OnChange has f told of every change that a write makes, in order, before any watcher sees it. It
// misses nothing, unlike a watch, which a small window or [Cache.Compact] can end. A Replace is not
// a write. f runs under the cache's locks: it must return soon and must not call the cache. Call
// OnChange before the first write; each call adds an observer.
func (c *Cache[T]) OnChange(f func(listwatch.Event[T])) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.observers = append(c.observers, f)
}

// observeLocked tells the observers of a change, as a watcher of the whole collection sees it.
func (c *Cache[T]) observeLocked(ch *change[T]) {
	if len(c.observers) == 0 {
		return
	}
	var d Delivery[T]
	ch.tell(&d, ch.effectOn(&selection[T]{}))
	for _, told := range c.observers {
		told(d.Event)
	}
}
