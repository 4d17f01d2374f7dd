package trie

import (
	"math/bits"
	"sync/atomic"
)

// Writer writes Maps. It is a value without state.
type Writer[K comparable, V any] struct {
	// Hash is the function by which keys are placed. It is called for what is in a bucket that has grown too large.
	Hash func(K) uint64
	// Owner is 0 where each write is to leave the Map it began from as it was. Under an owner from [NewOwner], writes
	// change in place what earlier ones under it have made: of the Maps they returned only the newest may be used,
	// until the last write is done.
	Owner uint64
}

var owners atomic.Uint64

// NewOwner begins a transaction: a number that no other has.
func NewOwner() uint64 { return owners.Add(1) }

// Set stores value under key, which has the given hash, and returns what was there. A key that is there stays: it is
// equal, and shared by older versions.
func (t Writer[K, V]) Set(m Map[K, V], hash uint64, key K, value V) (now Map[K, V], old V, replaced bool) {
	w := write[K, V]{Writer: t, hash: hash, find: key, put: Entry[K, V]{Key: key, Value: value}}
	now.root = w.set(m.root, 0)
	return now, w.old.Value, w.found
}

// Swap stores key in place of old, which has the same hash; it adds key where old is not there.
func (t Writer[K, V]) Swap(m Map[K, V], hash uint64, old, key K) Map[K, V] {
	w := write[K, V]{Writer: t, hash: hash, find: old, put: Entry[K, V]{Key: key}, swap: true}
	return Map[K, V]{w.set(m.root, 0)}
}

// Delete removes key, which has the given hash, and returns what was there.
func (t Writer[K, V]) Delete(m Map[K, V], hash uint64, key K) (now Map[K, V], old Entry[K, V], deleted bool) {
	w := write[K, V]{Writer: t, hash: hash, find: key}
	now.root = w.delete(m.root, 0)
	return now, w.old, w.found
}

// write is one write on its way down the trie.
type write[K comparable, V any] struct {
	Writer[K, V]
	hash  uint64
	find  K
	put   Entry[K, V]
	swap  bool // put the key too
	old   Entry[K, V]
	found bool
}

// own returns a node of the same size that this transaction may change.
func (w *write[K, V]) own(n *node[K, V]) *node[K, V] {
	if w.Owner != 0 && n.owner == w.Owner {
		return n
	}
	if n.slots != 0 {
		out := newBranch[K, V](w.Owner, n.count, n.slots)
		copy(out.kids(), n.kids())
		return out
	}
	out := newBucket[K, V](w.Owner, int(n.count))
	copy(out.entries(), n.entries())
	copy(out.tags(), n.tags())
	return out
}

func (w *write[K, V]) set(n *node[K, V], shift uint) *node[K, V] {
	if n == nil {
		n = newBucket[K, V](w.Owner, 1)
		n.entries()[0] = w.put
		n.setTag(0, tagOf(w.hash))
		return n
	}
	if n.slots == 0 {
		return w.setInBucket(n, shift)
	}
	bit := slotBit(w.hash, shift)
	i := rank(n.slots, bit)
	if n.slots&bit == 0 {
		return w.withKid(n, bit, i, w.set(nil, shift+width))
	}
	kid := w.set(n.kids()[i], shift+width)
	n = w.own(n)
	n.kids()[i] = kid
	if !w.found {
		n.count++
	}
	return n
}

func (w *write[K, V]) setInBucket(n *node[K, V], shift uint) *node[K, V] {
	if i := n.position(tagOf(w.hash), w.find); i >= 0 {
		n = w.own(n)
		e := &n.entries()[i]
		w.old, w.found = *e, true
		e.Value = w.put.Value
		if w.swap {
			e.Key = w.put.Key
		}
		return n
	}
	count := int(n.count)
	if count == bucketMax && shift < listAt {
		return w.split(n, shift)
	}
	out := newBucket[K, V](w.Owner, count+1)
	entries := out.entries()
	copy(entries, n.entries())
	entries[count] = w.put
	copy(out.tags(), n.tags())
	out.setTag(count, tagOf(w.hash))
	return out
}

// split makes a branch of a full bucket and what is put.
func (w *write[K, V]) split(n *node[K, V], shift uint) *node[K, V] {
	var entries [bucketMax + 1]Entry[K, V]
	var hashes [bucketMax + 1]uint64
	for i, e := range n.entries() {
		entries[i], hashes[i] = e, w.Hash(e.Key)
	}
	entries[bucketMax], hashes[bucketMax] = w.put, w.hash
	return w.build(entries[:], hashes[:], shift)
}

// build makes the node of that depth that holds entries; it reorders both slices.
func (w *write[K, V]) build(entries []Entry[K, V], hashes []uint64, shift uint) *node[K, V] {
	if len(entries) <= bucketMax || shift >= listAt {
		out := newBucket[K, V](w.Owner, len(entries))
		copy(out.entries(), entries)
		for i, hash := range hashes {
			out.setTag(i, tagOf(hash))
		}
		return out
	}
	slots := uint32(0)
	for _, hash := range hashes {
		slots |= slotBit(hash, shift)
	}
	out := newBranch[K, V](w.Owner, uint32(len(entries)), slots)
	for i := range out.kids() {
		bit, end := slots&-slots, 0
		for j := range entries { // those of this slot go to the front
			if slotBit(hashes[j], shift) == bit {
				entries[end], entries[j] = entries[j], entries[end]
				hashes[end], hashes[j] = hashes[j], hashes[end]
				end++
			}
		}
		out.kids()[i] = w.build(entries[:end], hashes[:end], shift+width)
		slots, entries, hashes = slots&^bit, entries[end:], hashes[end:]
	}
	return out
}

// delete returns n without the key; nil when nothing is left, n itself when the key was not there.
func (w *write[K, V]) delete(n *node[K, V], shift uint) *node[K, V] {
	if n == nil {
		return nil
	}
	if n.slots == 0 {
		return w.deleteFromBucket(n)
	}
	bit := slotBit(w.hash, shift)
	if n.slots&bit == 0 {
		return n
	}
	i := rank(n.slots, bit)
	kid := w.delete(n.kids()[i], shift+width)
	switch {
	case !w.found:
		return n
	case n.count == bucketMax+1:
		return w.fold(n, i, kid)
	case kid == nil:
		return w.withoutKid(n, bit, i)
	}
	n = w.own(n)
	n.kids()[i] = kid
	n.count--
	return n
}

func (w *write[K, V]) deleteFromBucket(n *node[K, V]) *node[K, V] {
	i := n.position(tagOf(w.hash), w.find)
	if i < 0 {
		return n
	}
	entries := n.entries()
	w.old, w.found = entries[i], true
	if len(entries) == 1 {
		return nil
	}
	out := newBucket[K, V](w.Owner, len(entries)-1)
	left := out.entries()
	copy(left, entries[:i])
	copy(left[i:], entries[i+1:])
	for j := range left {
		if j < i {
			out.setTag(j, n.tag(j))
		} else {
			out.setTag(j, n.tag(j+1))
		}
	}
	return out
}

// fold makes one bucket of a branch whose i-th child has just become kid, and which has no more than a bucket holds. Its
// children are buckets, since a branch has more entries than that.
func (w *write[K, V]) fold(n *node[K, V], i int, kid *node[K, V]) *node[K, V] {
	out, at := newBucket[K, V](w.Owner, int(n.count)-1), 0
	for j, from := range n.kids() {
		if j == i {
			from = kid
		}
		if from == nil {
			continue
		}
		for k, e := range from.entries() {
			out.entries()[at] = e
			out.setTag(at, from.tag(k))
			at++
		}
	}
	return out
}

func (w *write[K, V]) withKid(n *node[K, V], bit uint32, i int, kid *node[K, V]) *node[K, V] {
	out := newBranch[K, V](w.Owner, n.count+kid.count, n.slots|bit)
	kids := out.kids()
	copy(kids, n.kids()[:i])
	kids[i] = kid
	copy(kids[i+1:], n.kids()[i:])
	return out
}

func (w *write[K, V]) withoutKid(n *node[K, V], bit uint32, i int) *node[K, V] {
	if bits.OnesCount32(n.slots) == 1 {
		panic("trie: a branch that is not folded has lost its last child")
	}
	out := newBranch[K, V](w.Owner, n.count-1, n.slots&^bit)
	copy(out.kids(), n.kids()[:i])
	copy(out.kids()[i:], n.kids()[i+1:])
	return out
}
