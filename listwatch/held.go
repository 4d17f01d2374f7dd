package listwatch

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/store"
)

// Holding returns the same source for a reader that has a copy already. An object that comes in the
// very bytes from which held's object was decoded is not decoded again: held's object is yielded in
// its place. So is an object that comes in other bytes and proves to be equal. Of a watch, only
// additions are compared: a change has a version of its own. A list then costs what has changed.
// What differs is yielded as it comes, also under an equal resource version: a server can change the
// content of its answers without one, by a CRD's new default for example.
//
// It keeps a digest of 128 bits for each object that it has yielded and that is still referenced, some 100 bytes each.
//
// held is called by whoever ranges over the list or watch, with the object's key, must not block, and must be safe for
// concurrent use. A reflector finds this method by type assertion. It has no effect on sources that do not decode.
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

// heldCopy is the copy that the reader of a list or watch has.
type heldCopy[T store.Object] struct {
	// get returns the object under key, and the object that the reader itself keeps.
	get     func(key string) (obj T, kept any, found bool)
	digests *digests
	// standIns: only the identity of obj counts, and it is valid until get is called again. [Project] holds the copy, and
	// compares.
	standIns bool
}

// identity is what two states of one object differ in, as it stands in a buffer.
type identity struct{ namespace, name, resourceVersion, uid []byte }

// counterpart is what is held of an object in the version that has come; it is zero if nothing is.
type counterpart[T store.Object] struct {
	obj   T
	kept  any
	found bool
	entry uint64 // of its digest
	due   bool   // it is compared in this list, whatever its digest says
}

// find returns what is held of an object in just this version.
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
	c.due = !h.standIns && h.digests.due(c.entry) // a stand-in has nothing to compare
	return c
}

// isFrom reports whether the object that is held was decoded from these very bytes. Versions are compared before, so that most
// objects that have changed need no digest to prove it.
func (h *heldCopy[T]) isFrom(c counterpart[T], data []byte) bool {
	switch {
	case !c.found:
		return false
	case c.due:
		return encodesTo(c.obj, data)
	}
	return h.digests.is(c.entry, c.kept, h.digests.sum(data))
}

// settle remembers from which bytes obj was decoded, and returns obj, or the object that is held if the two are equal.
func (h *heldCopy[T]) settle(c counterpart[T], data []byte, obj T) T {
	if h == nil {
		return obj
	}
	sum := h.digests.sum(data)
	switch {
	case !c.found || h.standIns:
	case content.Equal(c.obj, obj):
		obj = c.obj
	case h.digests.is(c.entry, c.kept, sum): // the bytes are the same, and the object is not
		h.digests.distrust(store.KeyOf(obj))
	}
	if uid := obj.GetUID(); uid != "" { // without one, nothing is found again
		h.digests.note(h.digests.entry(uid), obj, sum)
	}
	return obj
}

// item returns the object of one item of a list: the one that is held, or else a new one.
func (h *heldCopy[T]) item(e encoding[T], data []byte, kind schema.GroupVersionKind) (T, error) {
	var c counterpart[T]
	if h != nil {
		if c = h.find(e.identity(data)); h.isFrom(c, data) {
			return c.obj, nil
		}
	}
	obj, err := e.object(data, kind, nil)
	if err == nil {
		err = named(obj)
	}
	if err != nil {
		return obj, err
	}
	return h.settle(c, data, obj), nil
}

// heldEvent returns the event whose object is held.
func (d *decoder[T]) heldEvent(f frame[T]) (event Event[T], found bool) {
	if !d.held.isFrom(f.held, f.object) {
		return event, false
	}
	return newEvent(watch.EventType(f.event), f.held.obj), true
}

// holds reports whether an event can be about a state that is held. Initial events are additions; a
// modification or deletion has a version of its own, and asking would cost a key and a look-up each.
func (d *decoder[T]) holds(f frame[T]) bool {
	return d.held != nil && watch.EventType(f.event) == watch.Added &&
		f.malformed == nil && f.sealed == nil && d.check(f.kind.Kind) == nil
}
