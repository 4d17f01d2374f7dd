package listwatch

import (
	"bytes"
	"errors"
	"hash/maphash"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/internal/sharing"
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
	if held == nil {
		panic("listwatch: Holding: the function is nil: read from the ListWatch itself")
	}
	if lw.holding == nil {
		return lw
	}
	digests := newDigests()
	if digests == nil {
		return lw
	}
	digests.resource = lw.collection.resource
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
	// compares is set if the reader keeps bytes, and so compares them itself: it has no digests.
	compares func(obj T, data []byte) bool
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
	c.obj, c.kept, c.found = h.get(id.key())
	if !c.found || string(c.obj.GetUID()) != string(id.uid) || c.obj.GetResourceVersion() != string(id.resourceVersion) {
		return counterpart[T]{}
	}
	if h.compares != nil {
		return c
	}
	c.entry = h.digests.entryOf(id.uid)
	c.due = h.own == nil && h.digests.due(c.entry) // a stand-in has no content
	return c
}

// last is the state of the held object of that name and UID, if it was decoded here. The reader
// holds it strongly, so that no weak pointer is read: that waits for the garbage collector (see
// digested). A stand-in has no content.
func (h *heldCopy[T]) last(id identity) sharing.Last {
	if h == nil || h.own != nil || h.compares != nil || len(id.uid) == 0 {
		return sharing.Last{}
	}
	known, notes := h.digests.last(h.digests.entryOf(id.uid))
	if known == (digested{}) {
		return sharing.Last{}
	}
	if _, kept, found := h.get(id.key()); found && known.isOf(kept) {
		return sharing.Last{Object: kept, Notes: notes}
	}
	return sharing.Last{}
}

// key is that of the object in a store.
func (id *identity) key() string {
	var buffer [128]byte // for the usual key
	key := buffer[:0]
	if len(id.namespace) > 0 {
		key = append(append(key, id.namespace...), '/')
	}
	return string(append(key, id.name...))
}

// isFrom reports whether the held object was decoded from these very bytes, and may be yielded in
// their place. find has compared versions before, so most changed objects need no digest.
func (h *heldCopy[T]) isFrom(c *counterpart[T], data []byte) bool {
	switch {
	case !c.found:
		return false
	case h.compares != nil:
		return h.compares(c.obj, data)
	case c.due:
		return encodesTo(c.obj, data)
	}
	is := h.digests.is(c.entry, c.kept, h.digests.hash.Sum(data))
	if is && h.own != nil {
		c.obj = h.own(c.obj)
	}
	return is
}

// settle notes the bytes from which obj was decoded, with the notes of its decoding. It returns
// obj, or the held object if the two are equal.
func (h *heldCopy[T]) settle(c counterpart[T], data []byte, obj T, notes sharing.Notes) T {
	if h == nil || h.compares != nil {
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
		h.digests.note(h.digests.entry(uid), obj, sum, notes)
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

// digests remembers the bytes from which a reader's objects were decoded: a 128-bit digest per
// object. If the same bytes come again, and the reader still holds that very object, nothing has
// changed.
//
// An entry stands under the hash of a UID, but belongs to one object in memory: a store may refuse
// an object, and others may write into it. Weak pointers let an entry neither keep an object, nor
// vouch for another object at its address. A collision of hashes costs decoding again.
//
// It is safe for concurrent use.
type digests struct {
	hash     *sharing.Hash
	seed     maphash.Seed // hashes UIDs
	resource string       // for log lines; empty if it is unknown

	rounds atomic.Uint32 // lists begun
	turns  atomic.Uint32 // lists until every object was compared; zero before the first list

	mu       sync.Mutex
	entries  map[uint64]digested
	notes    map[uint64]sharing.Notes // of the entries that changed since the last list began
	full     int                      // the number of entries that triggers a sweep
	sweeping bool
}

// checkedPerList is the approximate number of held objects to compare in each list, whatever their
// digests say. To compare all of 10,000 pods, as the memo compares all its values, takes 1.8 times
// the CPU of a relist in protobuf, and 3.0 times in JSON.
const checkedPerList = 1024

// encodesTo reports whether an object's encoding is data. Encoding is several times as fast as
// decoding and comparing, which remains if it returns false.
func encodesTo(object any, data []byte) bool {
	message, ok := object.(interface {
		Size() int
		MarshalToSizedBuffer([]byte) (int, error)
	})
	if !ok || message.Size() != len(data) {
		return false
	}
	buffer := encodeBuffers.Get().(*[]byte)
	defer encodeBuffers.Put(buffer)
	if cap(*buffer) < len(data) {
		*buffer = make([]byte, len(data))
	}
	written := (*buffer)[:len(data)]
	n, err := message.MarshalToSizedBuffer(written)
	return err == nil && n == len(data) && bytes.Equal(written, data)
}

var encodeBuffers = sync.Pool{New: func() any { return new([]byte) }}

// begin begins a list, which compares every object of a small collection, and a part of a large
// one. It reports whether the reader has ever got an object.
func (d *digests) begin() (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rounds.Add(1)
	d.turns.Store(1 + uint32(len(d.entries)/checkedPerList))
	d.notes = nil // they would take over what a program has written
	return d.entries != nil
}

// due reports whether this list compares the object. The turn follows from the UID alone, so every
// object has one. An object in known bytes is not decoded, so the memo's doubt does not reach it:
// without turns, TestAWriteIntoAHeldObjectIsHealed fails.
func (d *digests) due(entry uint64) bool {
	turns := d.turns.Load()
	return turns > 0 && uint32(entry)%turns == d.rounds.Load()%turns
}

// distrust forgets all digests: a program has written into one object, against the rule, and maybe
// into others. So the rest of this list, and the whole next one, are decoded and compared.
func (d *digests) distrust(object string) {
	klog.Background().Error(errWritten, "An object of the store is replaced", "resource", d.resource, "object", object)
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.entries)
	clear(d.notes)
	d.full = minSweep
}

var errWritten = errors.New("it was written into: copy an object before you write")

// minSweep is the number of entries below which nothing is swept.
const minSweep = 1 << 12

// newDigests returns nil if the process may not hash: then every object is decoded each time.
func newDigests() *digests {
	hash, err := sharing.ProcessHash()
	if err != nil {
		return nil
	}
	return &digests{hash: hash, seed: maphash.MakeSeed(), full: minSweep}
}

func (d *digests) entry(uid types.UID) uint64 { return maphash.String(d.seed, string(uid)) }

func (d *digests) entryOf(uid []byte) uint64 { return maphash.Bytes(d.seed, uid) }

// is reports whether an object was decoded from bytes with that digest.
func (d *digests) is(entry uint64, object any, sum sharing.Digest) bool {
	e, _ := d.last(entry)
	return e.sum == sum && e.isOf(object)
}

// note remembers the digest of the bytes from which an object was decoded, and the notes.
func (d *digests) note(entry uint64, object any, sum sharing.Digest, notes sharing.Notes) {
	at := pointerTo(object)
	if at == nil {
		return
	}
	e := digested{object: weak.Make(at), sum: sum}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.entries) >= d.full && !d.sweeping {
		d.sweeping = true
		go d.sweep(maps.Clone(d.entries)) // not here: it reads weak pointers
	}
	if d.entries == nil {
		d.entries = map[uint64]digested{}
	}
	d.entries[entry] = e
	if len(notes) == 0 {
		delete(d.notes, entry)
		return
	}
	if d.notes == nil {
		d.notes = map[uint64]sharing.Notes{}
	}
	d.notes[entry] = notes
}

// last is what was noted last under an entry.
func (d *digests) last(entry uint64) (digested, sharing.Notes) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries[entry], d.notes[entry]
}

// became moves an entry: the reader has kept to instead of from.
func (d *digests) became(entry uint64, from, to any) {
	if e, _ := d.last(entry); e.isOf(from) {
		d.note(entry, to, e.sum, nil)
	}
}

func (d *digests) forget(uid []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	entry := d.entryOf(uid)
	delete(d.entries, entry)
	delete(d.notes, entry)
}

// sweep drops the entries of dead objects. If many are dead, it makes a new map: a map never
// shrinks.
func (d *digests) sweep(entries map[uint64]digested) {
	maps.DeleteFunc(entries, func(_ uint64, e digested) bool { return e.object.Value() != nil })
	d.mu.Lock()
	defer d.mu.Unlock()
	had := len(d.entries)
	for entry, dead := range entries {
		if d.entries[entry] == dead {
			delete(d.entries, entry)
			delete(d.notes, entry)
		}
	}
	if len(d.entries) < had/2 {
		d.entries = maps.Clone(d.entries)
	}
	d.full, d.sweeping = max(minSweep, 2*len(d.entries)), false
}

// digested names an object by a weak pointer, which is compared and not read: Value waits while a
// garbage collection ends, which takes hundreds of milliseconds on a busy machine. Weak pointers
// are equal if they were made from one object, and no later object at its address makes an equal
// one.
type digested struct {
	object weak.Pointer[byte]
	sum    sharing.Digest
}

func (e *digested) isOf(object any) bool {
	at := pointerTo(object)
	return at != nil && e.object == weak.Make(at)
}

// pointerTo returns an object's address. An object that is not a pointer has no digest.
func pointerTo(object any) *byte {
	v := reflect.ValueOf(object)
	if v.Kind() != reflect.Pointer {
		return nil
	}
	return (*byte)(v.UnsafePointer())
}
