package listwatch

import (
	"bytes"
	"hash/maphash"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/sharing"
)

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
	hash *sharing.Hash
	seed maphash.Seed // hashes UIDs

	rounds atomic.Uint32 // lists begun
	turns  atomic.Uint32 // lists until every object was compared; zero before the first list

	mu      sync.Mutex
	entries map[uint64]digested
	full    int // the number of entries that triggers a sweep
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
// one.
func (d *digests) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rounds.Add(1)
	d.turns.Store(1 + uint32(len(d.entries)/checkedPerList))
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
	klog.Background().Error(nil, "An object of the store was written into and is replaced: copy before you write", "object", object)
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.entries)
	d.full = minSweep
}

// minSweep is the number of entries below which nothing is swept.
const minSweep = 1 << 12

// newDigests returns nil if the process may not hash: then every object is decoded each time.
func newDigests() *digests {
	hash, err := sharing.NewHash()
	if err != nil {
		return nil
	}
	return &digests{hash: hash, seed: maphash.MakeSeed(), entries: map[uint64]digested{}, full: minSweep}
}

func (d *digests) entry(uid types.UID) uint64 { return maphash.String(d.seed, string(uid)) }

func (d *digests) entryOf(uid []byte) uint64 { return maphash.Bytes(d.seed, uid) }

// is reports whether an object was decoded from bytes with that digest.
func (d *digests) is(entry uint64, object any, sum sharing.Digest) bool {
	d.mu.Lock()
	e, ok := d.entries[entry]
	d.mu.Unlock()
	return ok && e.sum == sum && e.isOf(object)
}

// note remembers the digest of the bytes from which an object was decoded.
func (d *digests) note(entry uint64, object any, sum sharing.Digest) {
	at := pointerTo(object)
	if at == nil {
		return
	}
	e := digested{object: weak.Make(at), sum: sum}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.entries) >= d.full {
		d.sweepLocked()
	}
	d.entries[entry] = e
}

// last returns the address of the object that was noted last under a UID; nil if it is gone.
func (d *digests) last(uid []byte) *byte {
	d.mu.Lock()
	e := d.entries[d.entryOf(uid)]
	d.mu.Unlock()
	return e.object.Value()
}

// became moves an entry: the reader has kept to instead of from.
func (d *digests) became(entry uint64, from, to any) {
	d.mu.Lock()
	e, ok := d.entries[entry]
	d.mu.Unlock()
	if ok && e.isOf(from) {
		d.note(entry, to, e.sum)
	}
}

func (d *digests) forget(uid []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.entries, d.entryOf(uid))
}

// sweepLocked drops the entries of dead objects. If many are dead, it makes a new map: a map never
// shrinks.
func (d *digests) sweepLocked() {
	had := len(d.entries)
	maps.DeleteFunc(d.entries, func(_ uint64, e digested) bool { return e.object.Value() == nil })
	if len(d.entries) < had/2 {
		d.entries = maps.Clone(d.entries)
	}
	d.full = max(minSweep, 2*len(d.entries))
}

type digested struct {
	object weak.Pointer[byte]
	sum    sharing.Digest
}

func (e *digested) isOf(object any) bool {
	at := pointerTo(object)
	return at != nil && e.object.Value() == at
}

// pointerTo returns an object's address. An object that is not a pointer has no digest.
func pointerTo(object any) *byte {
	v := reflect.ValueOf(object)
	if v.Kind() != reflect.Pointer {
		return nil
	}
	return (*byte)(v.UnsafePointer())
}
