package watchcache

import (
	"cmp"
	"math"
	"slices"

	"github.com/tributary-go/tributary/store"
)

// publish makes a committed write visible to watchers; the writing lock is held.
func (c *Cache[T]) publish(version uint64, changes []*change[T]) {
	after := c.objects.Snapshot()
	c.mu.Lock()
	if !c.filled {
		// Nobody has seen anything yet: the history begins before the first write, with nothing.
		c.window.clear(max(version, 1)-1, store.Snapshot[T]{}, false)
	}
	for _, ch := range changes {
		ch.version = max(ch.version, c.version)
		ch.state, ch.complete = after, ch.version
		c.window.note(ch)
		c.observeLocked(ch)
	}
	c.state, c.version, c.filled = after, max(c.version, version), true
	c.mu.Unlock()
	c.changed.Broadcast()
}

// publishList makes a replaced content visible; the writing lock is held.
func (c *Cache[T]) publishList(version uint64, before store.Snapshot[T]) {
	after := c.objects.Snapshot()
	var changes []*change[T]
	fits := c.filled && version >= c.version
	if fits {
		changes = changesBetween(before, after, c.version, version)
		fits = len(changes) <= c.window.Cap()
	}
	c.mu.Lock()
	if fits {
		for i, ch := range changes {
			ch.before, ch.gap, ch.complete = c.version, true, math.MaxUint64
			ch.version = min(max(ch.version, c.version), version)
			if i == len(changes)-1 {
				ch.state, ch.complete = after, version
			}
			c.window.note(ch)
		}
	} else {
		c.window.clear(version, after, c.filled)
	}
	c.state, c.version, c.filled = after, version, true
	c.mu.Unlock()
	c.changed.Broadcast()
}

// changesBetween are the changes from one state to the next, ordered by version. A deletion is at
// version, the newest that it can be at; one that makes room for another object of the same name is
// just before that. Content that changed under a version that watchers have passed, since at most,
// is at version too.
func changesBetween[T store.Object](before, after store.Snapshot[T], since, version uint64) []*change[T] {
	var changes []*change[T]
	for d := range store.Diff(before, after) {
		ch := &change[T]{old: d.Old, now: d.New, version: version}
		switch {
		case !d.Deleted():
			if own := versionOf(d.New); own > since {
				ch.version = own
			}
		default:
			if successor, ok := after.Get(d.Key); ok {
				ch.version = max(versionOf(successor), 1) - 1
			}
		}
		changes = append(changes, ch)
	}
	slices.SortStableFunc(changes, func(a, b *change[T]) int { return cmp.Compare(a.version, b.version) })
	return changes
}
