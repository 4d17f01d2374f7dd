package watchcache

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/internal/object"
	"github.com/tributary-go/tributary/store"
)

// Delivery is an event on its way to one watcher. A deletion has the last state that the watcher's
// selectors matched, under the resource version of the deletion.
type Delivery[T store.Object] struct {
	listwatch.Event[T]
	of *change[T]  // the change that it is a view of; nil for initial events and bookmarks
	in *listing[T] // of an initial event: the state of which it is the object at an index
	at int
}

// initialEvents is the kind of the encodings of initial events, beside those of list items.
type initialEvents struct{ format any }

// change is one event in the window, before any selector: all watchers share it, its copies and its
// encodings.
type change[T store.Object] struct {
	cache    *Cache[T]
	number   uint64 // in the window
	version  uint64
	text     string // of version, made once for all watchers
	old, now T      // the zero T stands for absent

	// For exact lists: the content does not change from version complete until the next change.
	complete uint64
	gap      *gap // in which a Replace found the change; nil if it came as an event

	at           time.Duration // since the cache was made
	histories    []*history[T] // to tell when the window drops it; guarded by the cache's mu
	fewHistories [2]*history[T]
	awaited      atomic.Int32 // how many of histories still await it

	bytes   int          // of the object on the wire; zero if unknown
	weight  int64        // in bytes, of the memory that only the window keeps
	retired bool         // the window has dropped it; guarded by the encodings' mu
	keepers atomic.Int32 // how many lanes keep it beyond the window

	making sync.Mutex // held while a copy or an encoding is made
	gone   T
	frames atomic.Pointer[[]*frame]
}

// effect is a change seen through one selection.
type effect uint8

const (
	unseen  effect = iota
	appears        // the selection keeps the object after the change alone
	modified
	departs // the selection keeps the object before the change alone
)

// effectOf is the effect on a selection that keeps the object before the change, or after it.
func effectOf(was, is bool) effect {
	switch {
	case was && is:
		return modified
	case is:
		return appears
	case was:
		return departs
	}
	return unseen
}

// effect is that on a selection of everything.
func (c *change[T]) effect() effect { return effectOf(!pointer.None(c.old), !pointer.None(c.now)) }

// effectOn looks at the object before and after the change.
func (c *change[T]) effectOn(keep *selection[T]) effect {
	return effectOf(!pointer.None(c.old) && keep.matches(c.old), !pointer.None(c.now) && keep.matches(c.now))
}

// tell makes an empty d the event that the change is where it has an effect.
func (c *change[T]) tell(d *Delivery[T], as effect) {
	d.of, d.Object, d.ResourceVersion, d.Bytes = c, c.now, c.text, c.bytes
	switch as {
	case modified:
		d.Type = watch.Modified
	case appears:
		d.Type = watch.Added
	case departs:
		d.Type, d.Object = watch.Deleted, c.departed()
	}
}

// departed is the old state under the version of the change.
func (c *change[T]) departed() T {
	c.making.Lock()
	defer c.making.Unlock()
	if pointer.None(c.gone) {
		c.gone = object.Copy(c.old)
		c.gone.SetResourceVersion(c.text)
	}
	return c.gone
}

// Encoded is the event in the bytes of one format, any comparable value. The first watcher that
// asks has encode make them, and the others share them: they are read-only. Bytes that are no
// longer kept, see [WithWindowBytes], are made again.
func (d Delivery[T]) Encoded(format any, encode func(listwatch.Event[T]) ([]byte, error)) ([]byte, error) {
	c := d.of
	switch {
	case d.in != nil:
		whole := d.in.encodings(d.at, d.at+1, initialEvents{format}, func(T) ([]byte, error) { return encode(d.Event) })
		return whole.Bytes(0)
	case c == nil:
		return encode(d.Event)
	}
	if _, bytes := c.find(d.Type, format); bytes != nil {
		return *bytes, nil
	}
	c.making.Lock()
	defer c.making.Unlock()
	f, bytes := c.find(d.Type, format)
	if bytes != nil {
		return *bytes, nil
	}
	made, err := encode(d.Event)
	if err != nil {
		return nil, err
	}
	if f == nil {
		f = c.addFrame(d.Type, format)
	}
	c.cache.encodings.keep(made, f, &c.retired)
	return made, nil
}

// find returns the frame of a format, and its bytes while they are kept.
func (c *change[T]) find(event watch.EventType, format any) (*frame, *[]byte) {
	known := c.frames.Load()
	if known == nil {
		return nil, nil
	}
	for _, f := range *known {
		if f.event == event && f.format == format {
			return f, f.bytes.Load()
		}
	}
	return nil, nil
}

// addFrame makes the frame of a format. The making lock is held.
func (c *change[T]) addFrame(event watch.EventType, format any) *frame {
	f := &frame{event: event, format: format}
	frames := []*frame{f}
	if known := c.frames.Load(); known != nil {
		frames = append(frames, *known...)
	}
	c.frames.Store(&frames)
	return f
}

// retire ends the part that a change has in the window: its encodings are kept no more.
func (c *change[T]) retire() {
	x := &c.cache.encodings
	x.mu.Lock()
	defer x.mu.Unlock()
	c.retired = true
	if known := c.frames.Load(); known != nil {
		for _, f := range *known {
			x.discard(f)
		}
	}
}

// fewNoted is how many histories that await a change no more its list may have, beside as many as
// still await it. A reader takes none out: it does not hold the cache's mu.
const fewNoted = 8

// forgetHistories takes the histories that await the change no more out of its list, if they are
// most of it. A quiet collection drops no change, and would keep every history that was ever noted
// with one. The cache's mu is held.
func (c *change[T]) forgetHistories() {
	if len(c.histories) <= 2*int(c.awaited.Load())+fewNoted {
		return
	}
	waiting := map[*history[T]]struct{}{}
	for _, h := range c.histories {
		if h.isNoted(c) {
			waiting[h] = struct{}{}
		}
	}
	c.histories = slices.Collect(maps.Keys(waiting))
}

func formatVersion(version uint64) string { return strconv.FormatUint(version, 10) }
