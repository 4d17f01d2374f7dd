package packed

import (
	"sync"
	"sync/atomic"
	"weak"

	"github.com/tributary-go/tributary/store"
)

// hotObject is the decoded object of a cell.
type hotObject struct {
	obj  store.Object
	used atomic.Bool // since the hand was there
}

// read returns the object, and keeps it hot.
func (h *hotObject) read() store.Object {
	if !h.used.Load() {
		h.used.Store(true)
	}
	return h.obj
}

// hotSet is a ring of the cells that have a hot object (CLOCK). It is one for the process, so that
// its bound is. It holds cells weakly: a cell without a store takes its object with it.
type hotSet struct {
	mu           sync.Mutex
	slots        []slot
	hand         int
	bytes, limit int
}

type slot struct {
	cell  weak.Pointer[cell]
	bytes int
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
	bytes := document * decodedShare
	hot.mu.Lock()
	defer hot.mu.Unlock()
	if bytes > hot.limit || !c.hot.CompareAndSwap(nil, &hotObject{obj: obj}) {
		return
	}
	hot.roomLocked(bytes)
	hot.slots = append(hot.slots, slot{weak.Make(c), bytes})
	hot.bytes += bytes
}

// roomLocked lets objects cool until there is room. An object that was read since the hand was
// there last is passed over once.
func (h *hotSet) roomLocked(bytes int) {
	for passed := 0; h.bytes+bytes > h.limit && len(h.slots) > 0; {
		h.hand %= len(h.slots)
		at := &h.slots[h.hand]
		if c := at.cell.Value(); c != nil {
			if c.hot.Load().used.Swap(false) && passed <= len(h.slots) {
				h.hand++
				passed++
				continue
			}
			c.hot.Store(nil)
		}
		h.bytes -= at.bytes
		last := len(h.slots) - 1
		*at = h.slots[last]
		h.slots = h.slots[:last]
	}
}
