package watchcache

import "github.com/tributary-go/tributary/store"

// RequestOf is the request of options.
var RequestOf = requestOf

// Held is what a cache has for its watchers.
type Held struct {
	Triggers, Members, Backlogged, Window int
	Bytes, Encoded                        int64
	Noted                                 int   // lanes in the lists of the window's changes
	Kept                                  int64 // bytes that the backlog counts
	Listed                                int   // changes for which the lists of lanes have room
}

// FewNoted is the number of lanes of the past that a change may have in its list.
const FewNoted = fewNoted

// ListedWeight is what such a list takes for a change, in bytes.
const ListedWeight = listedWeight

// HeldBy looks at a cache that nobody is writing to.
func HeldBy[T store.Object](c *Cache[T]) (h Held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.Triggers = len(c.dispatch.triggers) + len(c.dispatch.labels)
	c.dispatch.each(func(l *lane[T]) {
		h.Members += l.readers
		if room := cap(l.changes); room > len(l.few) {
			h.Listed += room
		}
	})
	h.Backlogged, h.Kept = int(c.window.backlog.held.Load()), c.window.backlog.used.Load()
	h.Window, h.Bytes = c.window.Len(), c.window.bytes
	for n := c.window.First(); n < c.window.Next(); n++ {
		h.Noted += len(c.window.At(n).histories)
	}
	c.encodings.mu.Lock()
	defer c.encodings.mu.Unlock()
	h.Encoded = c.encodings.total
	return h
}
