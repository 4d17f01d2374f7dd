package listwatch

import (
	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/store"
)

// Holding returns the same source for a reader that already has a copy. An object that arrives in
// the very bytes from which held's object was decoded is not decoded again: the list or watch
// yields held's object. So does an object that arrives in other bytes and proves to be equal. In
// a watch, only additions are compared, since a change has a version of its own. A relist then
// costs only its changes.
//
// A different object is always yielded, even under an equal resource version: a server can change
// content without a new version, for example by a CRD's new default.
//
// It keeps a 128-bit digest for each yielded object that is still referenced, some 100 bytes each.
//
// held gets the object's key, on the goroutine that ranges over the list or watch. It must not
// block, and must be safe for concurrent use. A reflector finds this method by type assertion. It
// has no effect on sources that do not decode.
func (lw *ListWatch[T]) Holding(held func(key string) (T, bool)) ListerWatcher[T] {
	if lw.holding == nil {
		return lw
	}
	digests := newDigests()
	if digests == nil {
		return lw
	}
	return lw.holding(heldCopy[T]{digests: digests, get: func(key string) (obj T, kept any, found bool) {
		obj, found = held(key)
		return obj, obj, found
	}})
}

// heldCopy is the copy of a list's or watch's reader.
type heldCopy[T store.Object] struct {
	// get returns the object under key, and the object that the reader itself keeps.
	get     func(key string) (obj T, kept any, found bool)
	digests *digests
	// own is set if obj is a stand-in: it has an identity and no content, and is valid until the
	// next get. [Project] holds the copy, and compares. own returns a stand-in that stays until it
	// is yielded.
	own func(obj T) T
}

// identity names one state of an object, as slices of a buffer.
type identity struct{ namespace, name, resourceVersion, uid []byte }

// counterpart is the held object of the same version; zero if there is none.
type counterpart[T store.Object] struct {
	obj   T
	kept  any
	found bool
	entry uint64 // the entry of its digest
	due   bool   // this list compares it, whatever its digest says
}

// find returns the held object if it is of just this version.
func (h *heldCopy[T]) find(id identity) (c counterpart[T]) {
	if h == nil || len(id.uid) == 0 || len(id.resourceVersion) == 0 {
		return c
	}
	var buffer [128]byte // for the usual key
	key := buffer[:0]
	if len(id.namespace) > 0 {
		key = append(append(key, id.namespace...), '/')
	}
	c.obj, c.kept, c.found = h.get(string(append(key, id.name...)))
	if !c.found || string(c.obj.GetUID()) != string(id.uid) || c.obj.GetResourceVersion() != string(id.resourceVersion) {
		return counterpart[T]{}
	}
	c.entry = h.digests.entryOf(id.uid)
	c.due = h.own == nil && h.digests.due(c.entry) // a stand-in has no content
	return c
}

// last is the address of the object that was decoded last under a UID, while it is referenced. A
// stand-in has no content.
func (h *heldCopy[T]) last(uid []byte) *byte {
	if h == nil || h.own != nil {
		return nil
	}
	return h.digests.last(uid)
}

// isFrom reports whether the held object was decoded from these very bytes, and may be yielded in
// their place. find has compared versions before, so most changed objects need no digest.
func (h *heldCopy[T]) isFrom(c *counterpart[T], data []byte) bool {
	switch {
	case !c.found:
		return false
	case c.due:
		return encodesTo(c.obj, data)
	}
	is := h.digests.is(c.entry, c.kept, h.digests.hash.Sum(data))
	if is && h.own != nil {
		c.obj = h.own(c.obj)
	}
	return is
}

// settle notes the bytes from which obj was decoded. It returns obj, or the held object if the two
// are equal.
func (h *heldCopy[T]) settle(c counterpart[T], data []byte, obj T) T {
	if h == nil {
		return obj
	}
	sum := h.digests.hash.Sum(data)
	switch {
	case !c.found || h.own != nil:
	case content.Equal(c.obj, obj):
		obj = c.obj
	case h.digests.is(c.entry, c.kept, sum): // equal bytes, but another object
		h.digests.distrust(store.KeyOf(obj))
	}
	if uid := obj.GetUID(); uid != "" { // an object without a UID is never found again
		h.digests.note(h.digests.entry(uid), obj, sum)
	}
	return obj
}

// holds finds the held object of an added one, and reports whether it was decoded from these bytes.
// Only an addition is compared: a change has a version of its own, and a look-up would cost a key.
func (d *decoder[T]) holds(f *frame[T]) bool {
	if d.held == nil || f.malformed != nil || f.sealed != nil || d.check(f.kind.Kind) != nil {
		return false
	}
	f.held = d.held.find(f.identity)
	return d.held.isFrom(&f.held, f.object)
}
