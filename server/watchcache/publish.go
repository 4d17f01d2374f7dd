package watchcache

import (
	"slices"
	"strconv"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// publish makes a committed write visible to watchers, and notes in woken the watchers to wake. The
// writing lock and mu are held.
func (c *Cache[T]) publish(version uint64, changes ...*change[T]) {
	if !c.filled {
		// No reader has seen a state yet: the history begins before the first write, with nothing.
		c.window.clear(max(version, 1)-1, false)
	}
	for _, ch := range changes {
		ch.version = max(ch.version, c.version)
		ch.complete = ch.version
		c.enter(ch)
		c.observeLocked(ch)
	}
	c.version, c.filled = max(c.version, version), true
	if len(c.states) > 0 {
		c.states = slices.DeleteFunc(c.states, func(v view[T]) bool { return v.version <= c.version })
	}
}

// publishList makes a replaced content visible; the writing lock is held.
func (c *Cache[T]) publishList(version uint64, before store.Snapshot[T]) {
	known := c.filled && version >= c.version && !c.another
	skipped := &gap{before: c.version, to: version}
	var changes []*change[T]
	if known {
		changes = changesIn(skipped, before, c.objects.Snapshot())
	}
	c.mu.Lock()
	if known {
		c.states = nil
		c.window.skip(skipped)
	} else {
		c.forgetAll(version, c.filled)
		c.lostBy = relisted
	}
	for _, ch := range changes {
		c.enter(ch)
	}
	c.replacing, c.version, c.filled = nil, version, true
	c.mu.Unlock()
	c.wake()
	if !known || skipped.to > skipped.before+1 {
		c.wakeAll() // a watcher may wait for a version of the gap
	}
	c.changed.Broadcast()
}

// enter puts a change into the window and its lanes.
func (c *Cache[T]) enter(ch *change[T]) {
	c.admit(ch)
	c.stats.received.Add(1)
	c.dispatch.enter(ch, &c.woken)
	c.window.backlog.trim()
}

// admit puts a change into the window.
func (c *Cache[T]) admit(ch *change[T]) {
	ch.cache, ch.at, ch.weight = c, c.now(), bareWeight
	if !pointer.None(ch.old) {
		ch.weight += c.lengths.of(ch.old, ch.bytes, pointer.None(ch.now))
	}
	ch.text = textOf(ch)
	c.window.note(ch)
}

// textOf is the version of a change as a text: that of its object, where they are the same.
func textOf[T store.Object](ch *change[T]) string {
	if !pointer.None(ch.now) {
		text := ch.now.GetResourceVersion()
		if version, err := strconv.ParseUint(text, 10, 64); err == nil && version == ch.version && text[0] != '0' {
			return text
		}
	}
	return formatVersion(ch.version)
}

// forgetAll clears the window, and the histories if watchers are to lose their unread changes; mu
// is held.
func (c *Cache[T]) forgetAll(version uint64, lost bool) {
	c.states = nil
	c.lengths.forgetAll()
	c.window.clear(version, lost)
	if lost {
		next := c.window.Next()
		c.lost.Store(next)
		c.dispatch.each(func(l *lane[T]) { l.loseAll(next) })
	}
}
