package packed

import (
	"bytes"
	"slices"
	"sync"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed/internal/delta"
)

// Few objects learn nothing: the first is the base of the others. The tables of a generation take
// some 24 KB, and pay from some 90 pods on. Without them, a list takes half of the time.
const (
	manyObjects = 100
	manyBytes   = 256 << 10
	// heldBack is how many bytes of a first list wait until the generation is learned, and samples
	// is from how many of their objects: pairs of neighbours.
	heldBack = 1 << 20
	samples  = 32
	// wornOut is how much larger than at first objects may become before the next list learns anew.
	wornOut = 1.5
)

// kin packs the objects of one store against each other. It is for the writer alone.
type kin struct {
	plain bool        // each object is kept in its own bytes
	codec Codec       // of objects without siblings; nil without one
	near  *delta.Base // of the object before; nil before the first
	many  bool        // the generation was learned from samples
	grown [][]byte    // samples for a new generation, once single writes have made a store large

	written       int     // objects of this generation
	added, bytes  int     // those that were not there before, and their documents
	unlike        int     // objects in a row for which a sibling was of no use
	first, recent float64 // how much of their bytes objects take: the first 1,000, and lately

	scratch *scratch // during a write
}

// scratch has the buffers of packing. All stores of the process share it.
type scratch struct {
	packer            delta.Packer
	document, payload []byte
}

var packers = sync.Pool{New: func() any { return new(scratch) }}

// borrow takes scratch for one write. The result returns it.
func (k *kin) borrow() (done func()) {
	k.scratch = packers.Get().(*scratch)
	return func() {
		if max(cap(k.scratch.document), cap(k.scratch.payload)) <= mostKept {
			packers.Put(k.scratch)
		}
		k.scratch = nil
	}
}

// reader has the buffers of reading.
type reader struct {
	unpacker delta.Unpacker
	document []byte
}

var readers = sync.Pool{New: func() any { return new(reader) }}

// mostKept is the largest buffer that waits for its next use.
const mostKept = 1 << 20

func (r *reader) done() {
	if cap(r.document) <= mostKept {
		readers.Put(r)
	}
}

// cell packs an object. held is the cell of its last state, or nil: its base is the likeliest one.
func (k *kin) cell(a arrival, digest uint64, held *cell) *cell {
	if k.plain || a.flags&flagPlain != 0 {
		return newCell(a.key, a.identity, a.flags, digest, a.document, nil)
	}
	if k.near == nil {
		k.begin(delta.Small(a.document))
	}
	near, alone := k.near, k.unlike >= restAfter
	if held != nil && held.base != nil && held.base.Generation() == near.Generation() {
		if held.base.IsAlone() {
			alone = true
		} else {
			near, alone = held.base, alone && held.base == near.Generation().Root()
		}
	}
	payload, base, size := k.pack(a.document, near, alone)
	k.note(a.document, size, held == nil)
	return newCell(a.key, a.identity, a.flags, digest, payload, base)
}

// An object without siblings takes more than unlikeShare of its document. The first of them in a
// row may be the bases of families. After restAfter of them, one in retried is still packed against
// a base.
const (
	unlikeShare   = 1. / 3
	familiesBegin = 8
	restAfter     = 64
	retried       = 16
)

// pack packs a document against a base, or alone if that is smaller. If alone, only now and then
// it looks whether a base is of use. size is with a new base.
func (k *kin) pack(document []byte, near *delta.Base, alone bool) (payload []byte, base *delta.Base, size int) {
	defer func() { k.scratch.payload = payload }()
	g := near.Generation()
	if alone && k.written%retried != 0 {
		if g.CodesAlone() {
			payload, base = g.PackAlone(k.scratch.payload[:0], document)
			return payload, base, len(payload)
		}
		near = g.Root() // the last base would be of no use, and take as long again
	}
	payload, base = k.scratch.packer.Pack(k.scratch.payload[:0], document, near)
	at := len(payload)
	size = at
	begins := base != nil && base != near && base != g.Root()
	if base != nil {
		k.near = base
	}
	if begins {
		size += base.Len()
	}
	if float64(size) <= unlikeShare*float64(len(document)) {
		k.unlike = 0
		return payload, base, size
	}
	k.unlike++
	if !g.CodesAlone() || begins && k.unlike <= familiesBegin {
		return payload, base, size
	}
	if both, of := g.PackAlone(payload, document); of != nil && len(both)-at < size {
		return both[at:], of, len(both) - at
	}
	return payload, base, size
}

// begin begins a generation. Without one, the next object begins it.
func (k *kin) begin(g *delta.Generation) {
	*k = kin{plain: k.plain, codec: k.codec, scratch: k.scratch}
	if g != nil {
		k.near = g.Root()
	}
}

// learn begins a generation of samples.
func (k *kin) learn(documents [][]byte) {
	g := delta.Learn(documents...)
	if k.codec != nil {
		pack, unpack := k.codec(documents)
		g.CodeAlone(delta.Coder{Pack: pack, Unpack: unpack})
	}
	k.begin(g)
	k.many = true
}

// settled is the number of objects after which their share is known.
const settled = 1000

// note counts an object that takes so many bytes. If single writes have made a small store large,
// it learns from the next objects.
func (k *kin) note(document []byte, packed int, added bool) {
	k.written++
	if added {
		k.added, k.bytes = k.added+1, k.bytes+len(document)
	}
	share := float64(packed) / float64(max(1, len(document)))
	if k.written <= settled {
		k.first += (share - k.first) / float64(k.written)
		k.recent = k.first
	} else {
		k.recent += (share - k.recent) / settled
	}
	if !k.many && isMany(k.added, k.bytes) {
		if k.grown = append(k.grown, bytes.Clone(document)); len(k.grown) == samples {
			k.learn(k.grown)
		}
	}
}

// isMany reports whether tables pay for so many objects, or for fewer that are large.
func isMany(objects, bytes int) bool {
	return objects >= manyObjects && bytes >= manyBytes || objects >= samples && bytes >= heldBack
}

// learns reports whether a list begins a new generation if it is large: without one, after a small
// one, and if objects have changed so much that they come out half as large again.
func (k *kin) learns() bool {
	return !k.plain && (!k.many || k.recent > wornOut*k.first)
}

// listing holds the first objects of a list back, to learn from them.
type listing struct {
	yield     func(store.Entry, error) bool
	back      []store.Entry
	documents [][]byte
	size      int
	ends      bool // nothing more is held back
}

// hold holds an object back, and reports whether that is enough.
func (l *listing) hold(item store.Entry, document []byte) bool {
	l.back, l.documents, l.size = append(l.back, item), append(l.documents, document), l.size+len(document)
	return l.size >= heldBack
}

// end learns, and yields the objects that were held back. It reports false if the list is to end.
func (l *listing) end(from interface{ learnFrom([][]byte) }) bool {
	back, documents := l.back, l.documents
	l.ends, l.back, l.documents = true, nil, nil
	if isMany(len(back), l.size) {
		step := max(2, len(back)/samples*2)
		var some [][]byte
		for chunk := range slices.Chunk(documents, step) {
			some = append(some, chunk[:min(2, len(chunk))]...)
		}
		from.learnFrom(some)
	}
	for _, item := range back {
		if !l.yield(item, nil) {
			return false
		}
	}
	return true
}

func (k *keeper[T]) learnFrom(documents [][]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kin.learn(documents)
}
