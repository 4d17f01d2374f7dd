package watchcache

import "github.com/tributary-go/tributary/store"

// RequestOf is the request of options.
var RequestOf = requestOf

// Held is what a cache has for its watchers.
type Held struct {
	Triggers, Members, Backlogged, Window int
	Bytes, Encoded                        int64
}

// HeldBy looks at a cache that nobody is writing to.
func HeldBy[T store.Object](c *Cache[T]) (h Held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.Triggers = len(c.dispatch.triggers) + len(c.dispatch.labels)
	c.dispatch.each(func(l *lane[T]) { h.Members += l.members })
	h.Backlogged = int(c.window.backlog.held.Load())
	h.Window, h.Bytes = c.window.Len(), c.window.bytes.Load()
	c.encodings.mu.Lock()
	defer c.encodings.mu.Unlock()
	h.Encoded = c.encodings.total
	return h
}
