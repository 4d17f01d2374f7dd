package watchcache

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache/internal/object"
)

// Delivery is an event on its way to one watcher. A deletion has the last state that the watcher's
// selectors matched, under the resource version of the deletion.
type Delivery[T store.Object] struct {
	listwatch.Event[T]
	of *change[T] // the change that it is a view of; nil for initial events and bookmarks
}

// change is one event in the window, before any selector: all watchers share it, its copies and its
// encodings.
type change[T store.Object] struct {
	version  uint64
	text     string // of version, made once for all watchers
	old, now T      // the zero T stands for absent

	// For exact lists: state is the content from version complete on, until the next change. A
	// change that a Replace found lies in a gap: between before and the list's version nobody knows
	// what the content was.
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
	format any
	bytes  []byte
}

// seenBy turns a change into the event that a selection sees; ok is false when it sees none.
func (c *change[T]) seenBy(keep *selection[T]) (d Delivery[T], ok bool) {
	var none T
	was := c.old != none && keep.matches(c.old)
	is := c.now != none && keep.matches(c.now)
	d = Delivery[T]{Event: listwatch.Event[T]{Object: c.now, ResourceVersion: c.text}, of: c}
	switch {
	case was && is:
		d.Type = watch.Modified
	case is:
		d.Type = watch.Added
	case was:
		d.Type, d.Object = watch.Deleted, c.departed()
	default:
		return d, false
	}
	return d, true
}

// departed is the old state under the version of the change.
func (c *change[T]) departed() T {
	c.mu.Lock()
	defer c.mu.Unlock()
	var none T
	if c.gone == none {
		c.gone = object.Copy(c.old)
		c.gone.SetResourceVersion(c.text)
	}
	return c.gone
}

// Encoded is the event in the bytes of one format, any comparable value. The first watcher that
// asks has encode make them, and the others share them: they are read-only.
func (d Delivery[T]) Encoded(format any, encode func(listwatch.Event[T]) ([]byte, error)) ([]byte, error) {
	if d.of == nil {
		return encode(d.Event)
	}
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	for _, known := range d.of.frames {
		if known.event == d.Type && known.format == format {
			return known.bytes, nil
		}
	}
	bytes, err := encode(d.Event)
	if err == nil {
		d.of.frames = append(d.of.frames, frame{event: d.Type, format: format, bytes: bytes})
	}
	return bytes, err
}

func formatVersion(version uint64) string { return strconv.FormatUint(version, 10) }
