package trie

import (
	"math/bits"
	"sync/atomic"
)

// Writer writes Maps. It is a value without state.
type Writer[K comparable, V any] struct {
	// Hash is the function by which keys are placed. It is called for the entries of a bucket that
	// has grown too large.
	Hash func(K) uint64
	// Owner is 0 if each write is to leave the Map it began from as it was. Under an owner from
	// [NewOwner], writes change in place the nodes that earlier writes under it have made: of the
	// Maps that they returned, only the newest may be used. A Map that must stay ends the
	// transaction: later writes need another owner.
	Owner uint64
}

var owners atomic.Uint64

// NewOwner begins a transaction: a number that no other has.
func NewOwner() uint64 { return owners.Add(1) }

// Set stores value under key, which has the given hash, and returns the old value. An equal key in
// the map stays: older versions share it.
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

// Delete removes key, which has the given hash, and returns its entry.
func (t Writer[K, V]) Delete(m Map[K, V], hash uint64, key K) (now Map[K, V], old Entry[K, V], deleted bool) {
	w := write[K, V]{Writer: t, hash: hash, find: key}
	now.root = w.delete(m.root, 0)
	return now, w.old, w.found
}

// Build makes a Map of entries and the hashes of their keys; of equal keys the last value counts.
// It takes fewer steps and less memory than as many writes, and neighbours in the Map are
// neighbours in memory. It reorders both slices.
func (t Writer[K, V]) Build(entries []Entry[K, V], hashes []uint64) Map[K, V] {
	if len(entries) == 0 {
		return Map[K, V]{}
	}
	w := write[K, V]{Writer: t}
	return Map[K, V]{w.build(rows[K, V]{entries, hashes}, rows[K, V]{make([]Entry[K, V], len(entries)), make([]uint64, len(entries))}, 0)}
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

// owns reports whether this transaction may change n in place.
func (w *write[K, V]) owns(n *node[K, V]) bool { return w.Owner != 0 && n.owner == w.Owner }

// own returns a node of the same size that this transaction may change.
func (w *write[K, V]) own(n *node[K, V]) *node[K, V] {
	if w.owns(n) {
		return n
	}
	if n.slots != 0 {
		out := newBranch[K, V](w.Owner, n.count, n.slots)
		copy(out.kids(), n.kids())
		return out
	}
	out := newBucket[K, V](w.Owner, int(n.count))
	copy(out.entries(), n.entries())
	out.copyTags(n, int(n.count))
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
	out := n
	if w.owns(n) && capacity(count) > count {
		out.count++
	} else {
		out = newBucket[K, V](w.Owner, count+1)
		copy(out.entries(), n.entries())
		out.copyTags(n, count)
	}
	out.entries()[count] = w.put
	out.setTag(count, tagOf(w.hash))
	return out
}

// split makes a branch of a full bucket and the new entry.
func (w *write[K, V]) split(n *node[K, V], shift uint) *node[K, V] {
	var entries, spare [bucketMax + 1]Entry[K, V]
	var hashes, spareHashes [bucketMax + 1]uint64
	for i, e := range n.entries() {
		entries[i], hashes[i] = e, w.Hash(e.Key)
	}
	entries[bucketMax], hashes[bucketMax] = w.put, w.hash
	return w.build(rows[K, V]{entries[:], hashes[:]}, rows[K, V]{spare[:], spareHashes[:]}, shift)
}

// rows are entries and the hashes of their keys.
type rows[K comparable, V any] struct {
	entries []Entry[K, V]
	hashes  []uint64
}

func (r rows[K, V]) slice(from, to int) rows[K, V] {
	return rows[K, V]{r.entries[from:to], r.hashes[from:to]}
}

// build makes a node of the rows r at a depth. It writes over both r and spare, which is as long.
func (w *write[K, V]) build(r, spare rows[K, V], shift uint) *node[K, V] {
	if len(r.entries) <= bucketMax || shift >= listAt {
		return w.buildBucket(r.withoutDuplicates())
	}
	var ends [1 << width]int // of each slot's run in spare, which keeps the order
	for _, hash := range r.hashes {
		ends[hash>>shift&slotMask]++
	}
	slots := uint32(0)
	for slot := range ends {
		if ends[slot] > 0 {
			slots |= 1 << slot
		}
		if slot > 0 {
			ends[slot] += ends[slot-1]
		}
	}
	next := [1 << width]int{}
	copy(next[1:], ends[:])
	for i, hash := range r.hashes {
		slot := hash >> shift & slotMask
		spare.entries[next[slot]], spare.hashes[next[slot]] = r.entries[i], hash
		next[slot]++
	}
	out, from := newBranch[K, V](w.Owner, 0, slots), 0
	kids := out.kids()
	for i := range kids {
		to := ends[bits.TrailingZeros32(slots)]
		kids[i] = w.build(spare.slice(from, to), r.slice(from, to), shift+width)
		out.count += kids[i].count
		from, slots = to, slots&(slots-1)
	}
	if out.count <= bucketMax { // many were equal
		return w.fold(out, 0, kids[0])
	}
	return out
}

func (w *write[K, V]) buildBucket(r rows[K, V]) *node[K, V] {
	out := newBucket[K, V](w.Owner, len(r.entries))
	copy(out.entries(), r.entries)
	for i, hash := range r.hashes {
		out.setTag(i, tagOf(hash))
	}
	return out
}

// withoutDuplicates has each key once, with its last value.
func (r rows[K, V]) withoutDuplicates() rows[K, V] {
	kept := 0
next:
	for i, e := range r.entries {
		for j := range kept {
			if r.hashes[j] == r.hashes[i] && r.entries[j].Key == e.Key {
				r.entries[j].Value = e.Value
				continue next
			}
		}
		r.entries[kept], r.hashes[kept] = e, r.hashes[i]
		kept++
	}
	return r.slice(0, kept)
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
	last := len(entries) - 1
	if last == 0 {
		return nil
	}
	out := n
	if !w.owns(n) || capacity(last) != capacity(len(entries)) {
		out = newBucket[K, V](w.Owner, last)
		copy(out.entries(), entries[:last])
		out.copyTags(n, last)
	}
	if i != last { // which fills the gap
		out.entries()[i] = entries[last]
		out.setTag(i, n.tag(last))
	}
	if out == n {
		entries[last] = Entry[K, V]{}
		n.count--
	}
	return out
}

// fold makes one bucket of a branch that has few enough entries: kid has just taken the place of
// its i-th child. The children are buckets, since a branch has more entries than a bucket.
func (w *write[K, V]) fold(n *node[K, V], i int, kid *node[K, V]) *node[K, V] {
	var entries [bucketMax]Entry[K, V]
	var tags [bucketMax]uint8
	count := 0
	for j, from := range n.kids() {
		if j == i {
			from = kid
		}
		if from == nil {
			continue
		}
		for k, e := range from.entries() {
			entries[count], tags[count] = e, from.tag(k)
			count++
		}
	}
	out := newBucket[K, V](w.Owner, count)
	copy(out.entries(), entries[:])
	for j := range count {
		out.setTag(j, tags[j])
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
