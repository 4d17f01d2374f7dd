package listwatch

import (
	"bytes"
	"reflect"
	"sync"
	"sync/atomic"
	"weak"

	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/sharing"
)

// digests remembers from which bytes the objects of one reader were decoded: a 128-bit digest of the
// wire form per object. If the same bytes come again, and the reader still holds that very object,
// nothing has changed.
//
// An entry belongs to an object and not to a key or version: a store may refuse what it was given,
// and others may write into it. Objects are held weakly, so that entries of objects that nobody keeps
// can be swept out. It is safe for concurrent use.
type digests struct {
	hash *sharing.Hash

	rounds atomic.Uint32 // lists that were begun
	turns  atomic.Uint32 // lists until every object was compared; zero before the first list

	mu      sync.Mutex
	entries map[uintptr]digested // by address
	full    int                  // entries at which to sweep
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

// due reports whether an object is to be compared in this list. Its turn follows from its UID alone, so that every
// object has one.
func (d *digests) due(uid []byte) bool {
	turns, turn := d.turns.Load(), uint32(0)
	for _, b := range uid {
		turn = turn*31 + uint32(b)
	}
	return turns > 0 && turn%turns == d.rounds.Load()%turns
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

type digested struct {
	object weak.Pointer[byte]
	sum    sharing.Digest
}

// minSweep is how many entries are kept without looking for those of objects that are gone.
const minSweep = 1 << 10

// newDigests returns nil if the process may not hash: then everything is decoded each time.
func newDigests() *digests {
	hash, err := sharing.NewHash()
	if err != nil {
		return nil
	}
	return &digests{hash: hash, entries: map[uintptr]digested{}, full: minSweep}
}

func (d *digests) sum(data []byte) sharing.Digest { return d.hash.Sum(data) }

// is reports whether an object was decoded from bytes with that digest.
func (d *digests) is(object any, sum sharing.Digest) bool {
	at, ok := pointerTo(object)
	if !ok {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.entries[address(at)]
	return ok && e.sum == sum && e.object.Value() == at
}

// note remembers the digest of the bytes that an object was decoded from.
func (d *digests) note(object any, sum sharing.Digest) {
	at, ok := pointerTo(object)
	if !ok {
		return
	}
	e := digested{object: weak.Make(at), sum: sum}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.entries) >= d.full {
		d.sweepLocked()
	}
	d.entries[address(at)] = e
}

// became hands an entry on: the reader has kept to in place of from.
func (d *digests) became(from, to any) {
	at, ok := pointerTo(from)
	if !ok {
		return
	}
	d.mu.Lock()
	e, ok := d.entries[address(at)]
	ok = ok && e.object.Value() == at
	if ok {
		delete(d.entries, address(at))
	}
	d.mu.Unlock()
	if ok {
		d.note(to, e.sum)
	}
}

// sweepLocked drops the entries of objects that are gone. The new map has room for the rest only: one
// that has been large keeps its size.
func (d *digests) sweepLocked() {
	living := 0
	for _, e := range d.entries {
		if e.object.Value() != nil {
			living++
		}
	}
	entries := make(map[uintptr]digested, living)
	for at, e := range d.entries {
		if e.object.Value() != nil {
			entries[at] = e
		}
	}
	d.entries, d.full = entries, max(minSweep, len(entries)+len(entries)/2)
}

// pointerTo is where an object is. Objects that are no pointers have no digest.
func pointerTo(object any) (*byte, bool) {
	v := reflect.ValueOf(object)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return nil, false
	}
	return (*byte)(v.UnsafePointer()), true
}

func address(of *byte) uintptr { return reflect.ValueOf(of).Pointer() }
