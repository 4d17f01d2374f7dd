package watchcache

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/store"
)

// Event is what a watcher gets.
type Event[T store.Object] struct {
	// Type is Added, Modified, Deleted or Bookmark, as the watcher's selectors see it.
	Type watch.EventType
	// Object is the new state. In a Deleted event it is the last state that the selectors matched, under the
	// resource version of the deletion. It is nil in a Bookmark. It is shared and read-only.
	Object T
	// ResourceVersion is where a watch goes on after this event.
	ResourceVersion string
	// InitialEventsEnd marks the bookmark after the last of the events that SendInitialEvents asked for.
	InitialEventsEnd bool

	of *change[T] // what it is a view of; nil for initial events and bookmarks
}

// change is one event in the window, before any selector: all watchers share it, its copies and its encodings.
type change[T store.Object] struct {
	version  uint64
	text     string // of version, made once for all watchers
	old, now T      // the zero T stands for absent

	// For exact lists: state is the content from version complete on, until the next change. A change that a
	// Replace found lies in a gap: between before and the list's version nobody knows what the content was.
	state    store.Snapshot[T]
	complete uint64
	gap      bool
	before   uint64

	mu     sync.Mutex // guards what is made on demand
	gone   T
	frames []frame
}

// frame is an event in the bytes of one format.
type frame struct {
	event  watch.EventType
	format format
	bytes  []byte
}

// seenBy turns a change into the event that a selection sees; ok is false when it sees none.
func (c *change[T]) seenBy(keep *selection[T]) (e Event[T], ok bool) {
	var none T
	was := c.old != none && keep.matches(c.old)
	is := c.now != none && keep.matches(c.now)
	e = Event[T]{Object: c.now, ResourceVersion: c.text, of: c}
	switch {
	case was && is:
		e.Type = watch.Modified
	case is:
		e.Type = watch.Added
	case was:
		e.Type, e.Object = watch.Deleted, c.departed()
	default:
		return e, false
	}
	return e, true
}

// departed is the old state under the version of the change.
func (c *change[T]) departed() T {
	c.mu.Lock()
	defer c.mu.Unlock()
	var none T
	if c.gone == none {
		c.gone = copyOf(c.old)
		c.gone.SetResourceVersion(c.text)
	}
	return c.gone
}

// encoded is the event in one format; encode makes it for the first watcher that asks, the others share it.
func (e Event[T]) encoded(f format, encode func(format, Event[T]) ([]byte, error)) ([]byte, error) {
	if e.of == nil {
		return encode(f, e)
	}
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	for _, known := range e.of.frames {
		if known.event == e.Type && known.format == f {
			return known.bytes, nil
		}
	}
	bytes, err := encode(f, e)
	if err == nil {
		e.of.frames = append(e.of.frames, frame{event: e.Type, format: f, bytes: bytes})
	}
	return bytes, err
}

func formatVersion(version uint64) string { return strconv.FormatUint(version, 10) }
