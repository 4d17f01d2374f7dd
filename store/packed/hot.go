package packed

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tributary-go/tributary/store"
)

// hotObject is the decoded object of a cell, until it cools.
type hotObject struct {
	obj   atomic.Pointer[store.Object] // nil when it has cooled
	used  atomic.Bool                  // since the hand was there
	bytes int
	gone  runtime.Cleanup // cools it when the cell is gone
}

func (h *hotObject) cool() { h.obj.Store(nil) }

// hotObject returns the object of a cell that is hot, and keeps it so, or nil.
func (c *cell) hotObject() store.Object {
	h := c.hot.Load()
	if h == nil {
		return nil
	}
	obj := h.obj.Load()
	if obj == nil {
		return nil
	}
	if !h.used.Load() {
		h.used.Store(true)
	}
	return *obj
}

// hotSet is a ring of the hot objects (CLOCK). It is one for the process, so that its bound is. It
// does not know the cells: to read a weak pointer may take as long as a garbage collection, and
// events wait for this lock.
type hotSet struct {
	mu           sync.Mutex
	objects      []*hotObject
	hand         int
	bytes, limit int
}

// DefaultHot is how many bytes the hot objects of the process take at most, by estimate.
const DefaultHot = 16 << 20

var hot = hotSet{limit: DefaultHot}

// SetHot bounds the hot objects of all stores of the process, in bytes: those are the objects that
// [Store.Get] read lately, and those that were written one by one. An object counts as three times
// its encoding. Zero keeps none.
func SetHot(bytes int) {
	hot.mu.Lock()
	defer hot.mu.Unlock()
	hot.limit = bytes
	hot.roomLocked(0)
}

// decodedShare is how much larger than its document an object is, about.
const decodedShare = 3

// heat makes obj the hot object of a cell with a document of so many bytes.
func heat(c *cell, obj store.Object, document int) {
	h := &hotObject{bytes: document * decodedShare}
	h.obj.Store(&obj)
	hot.mu.Lock()
	defer hot.mu.Unlock()
	before := c.hot.Load()
	if h.bytes > hot.limit || before != nil && before.obj.Load() != nil {
		return
	}
	hot.roomLocked(h.bytes)
	h.gone = runtime.AddCleanup(c, (*hotObject).cool, h)
	c.hot.Store(h)
	hot.objects = append(hot.objects, h)
	hot.bytes += h.bytes
}

// roomLocked lets objects cool until there is room. An object that was read since the hand was
// there last is passed over once.
func (s *hotSet) roomLocked(bytes int) {
	for passed := 0; s.bytes+bytes > s.limit && len(s.objects) > 0; {
		s.hand %= len(s.objects)
		h := s.objects[s.hand]
		if h.obj.Load() != nil && h.used.Swap(false) && passed <= len(s.objects) {
			s.hand++
			passed++
			continue
		}
		h.gone.Stop()
		h.cool()
		s.bytes -= h.bytes
		last := len(s.objects) - 1
		s.objects[s.hand] = s.objects[last]
		s.objects[last] = nil
		s.objects = s.objects[:last]
	}
}
