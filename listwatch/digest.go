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

// digests remembers from which bytes the objects of one reader were decoded: a 128-bit digest of
// the wire form per object. If the same bytes come again, and the reader still holds that very
// object, nothing has changed.
//
// An entry stands under the hash of a UID, but belongs to one object in memory: a store may refuse
// an object that it was given, and others may write into it. Objects are held weakly, so that an
// entry neither keeps an object nor vouches for another one that has come to its address. Two UIDs
// with one hash take each other's place, which costs decoding again.
//
// It is safe for concurrent use.
type digests struct {
	hash *sharing.Hash
	seed maphash.Seed // of the hashes of UIDs

	rounds atomic.Uint32 // lists that were begun
	turns  atomic.Uint32 // lists until every object was compared; zero before the first list

	mu      sync.Mutex
	entries map[uint64]digested
	full    int // entries at which to sweep
}

// checkedPerList is about how many held objects are compared in each list, whatever their digests say: all of a node's
// pods or a small cluster's services, and of a larger collection a part, by turns. To compare all of 50,000 in each
// list would cost as much again as the rest of a relist.
const checkedPerList = 1024

// encodesTo reports whether an object is written as data. Its generated code is several times as fast as decoding data
// and comparing; if it says no, that has to be done.
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

// begin begins a list, in which every object has its turn to be compared, or a part of them.
func (d *digests) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rounds.Add(1)
	d.turns.Store(1 + uint32(len(d.entries)/checkedPerList))
}

// due reports whether the object with that entry is to be compared in this list. Its turn follows
// from its UID alone, so that every object has one.
func (d *digests) due(entry uint64) bool {
	turns := d.turns.Load()
	return turns > 0 && uint32(entry)%turns == d.rounds.Load()%turns
}

// distrust forgets all digests: a program has written into an object, against the rule, and may have into others.
// The rest of the list under way is decoded and compared, and the whole next one.
func (d *digests) distrust(object string) {
	klog.Background().Error(nil, "An object of the store was written into and is replaced: copy before you write", "object", object)
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.entries)
	d.full = minSweep
}

// minSweep is how many entries are kept without looking for those of objects that are gone.
const minSweep = 1 << 12

// newDigests returns nil if the process may not hash: then everything is decoded each time.
func newDigests() *digests {
	hash, err := sharing.NewHash()
	if err != nil {
		return nil
	}
	return &digests{hash: hash, seed: maphash.MakeSeed(), entries: map[uint64]digested{}, full: minSweep}
}

func (d *digests) sum(data []byte) sharing.Digest { return d.hash.Sum(data) }

// entry is where the digest of an object stands.
func (d *digests) entry(uid types.UID) uint64 { return maphash.String(d.seed, string(uid)) }

func (d *digests) entryOf(uid []byte) uint64 { return maphash.Bytes(d.seed, uid) }

// is reports whether an object was decoded from bytes with that digest.
func (d *digests) is(entry uint64, object any, sum sharing.Digest) bool {
	d.mu.Lock()
	e, ok := d.entries[entry]
	d.mu.Unlock()
	return ok && e.sum == sum && e.isOf(object)
}

// note remembers the digest of the bytes that an object was decoded from.
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

// became hands an entry on: the reader has kept to in place of from.
func (d *digests) became(entry uint64, from, to any) {
	d.mu.Lock()
	e, ok := d.entries[entry]
	d.mu.Unlock()
	if ok && e.isOf(from) {
		d.note(entry, to, e.sum)
	}
}

// forget drops the entry of an object that was deleted.
func (d *digests) forget(uid []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.entries, d.entryOf(uid))
}

// sweepLocked drops the entries of objects that are gone. If many are, the rest moves into a new
// map: a map never gives memory back.
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

// pointerTo is where an object is. Objects that are no pointers have no digest.
func pointerTo(object any) *byte {
	v := reflect.ValueOf(object)
	if v.Kind() != reflect.Pointer {
		return nil
	}
	return (*byte)(v.UnsafePointer())
}
