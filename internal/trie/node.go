package trie

import (
	"math/bits"
	"unsafe"
)

// node is the head of a branch, a bucket or a list. What it heads follows it in the same object, at exactly the size that
// is needed: a slice of its own would be a second object per node and another step on every read. This file alone knows
// the layout:
//
//	branch  head, kids             slots != 0
//	bucket  head, tags, entries    slots == 0, count <= bucketMax; one byte of tag per entry, in words of eight
//	list    head, tag, []Entry     slots == 0, count > bucketMax; only where the hash is used up, so that all have one tag
type node[K comparable, V any] struct {
	owner uint64 // the transaction that may change this node in place; 0 for none
	count uint32 // entries in it and below it
	slots uint32 // which slots of a branch have a kid
}

type branch[K comparable, V, Kids any] struct {
	node[K, V]
	kids Kids
}

type bucket[K comparable, V, Tags, Entries any] struct {
	node[K, V]
	tags    Tags
	entries Entries
}

type list[K comparable, V any] struct {
	node[K, V]
	tag     uint64
	entries []Entry[K, V]
}

func (n *node[K, V]) body() unsafe.Pointer { return unsafe.Add(unsafe.Pointer(n), unsafe.Sizeof(*n)) }

// kids are the children of a branch, by slot.
func (n *node[K, V]) kids() []*node[K, V] {
	return unsafe.Slice((**node[K, V])(n.body()), bits.OnesCount32(n.slots))
}

// tags are those of a bucket, or the one of a list.
func (n *node[K, V]) tags() []uint64 { return unsafe.Slice((*uint64)(n.body()), n.tagWords()) }

func (n *node[K, V]) tagWords() int {
	if n.count > bucketMax {
		return 1
	}
	return int(n.count+7) / 8
}

func (n *node[K, V]) tag(i int) uint8 {
	if n.count > bucketMax {
		i = 0
	}
	return uint8(n.tags()[i/8] >> (i % 8 * 8))
}

func (n *node[K, V]) setTag(i int, tag uint8) {
	if n.count > bucketMax {
		i = 0
	}
	word, at := &n.tags()[i/8], i%8*8
	*word = *word&^(0xff<<at) | uint64(tag)<<at
}

// entries are those of a bucket or a list.
func (n *node[K, V]) entries() []Entry[K, V] {
	at := unsafe.Add(n.body(), n.tagWords()*8)
	if n.count > bucketMax {
		return *(*[]Entry[K, V])(at)
	}
	return unsafe.Slice((*Entry[K, V])(at), n.count)
}

// newBranch makes a branch of empty slots.
func newBranch[K comparable, V any](owner uint64, count, slots uint32) *node[K, V] {
	n := allocBranch[K, V](bits.OnesCount32(slots))
	n.owner, n.count, n.slots = owner, count, slots
	return n
}

// newBucket makes a bucket of count empty entries, or a list where they are too many for one.
func newBucket[K comparable, V any](owner uint64, count int) *node[K, V] {
	if count > bucketMax {
		n := &list[K, V]{entries: make([]Entry[K, V], count)}
		n.owner, n.count = owner, uint32(count)
		return &n.node
	}
	n := allocBucket[K, V](count)
	n.owner, n.count = owner, uint32(count)
	return n
}

func branchOf[K comparable, V, Kids any]() *node[K, V] { return &new(branch[K, V, Kids]).node }

func smallOf[K comparable, V, Entries any]() *node[K, V] {
	return &new(bucket[K, V, [1]uint64, Entries]).node
}

func largeOf[K comparable, V, Entries any]() *node[K, V] {
	return &new(bucket[K, V, [2]uint64, Entries]).node
}

// Go has no type whose size is chosen at run time, so that each size is a type.

func allocBranch[K comparable, V any](kids int) *node[K, V] {
	switch kids {
	case 1:
		return branchOf[K, V, [1]*node[K, V]]()
	case 2:
		return branchOf[K, V, [2]*node[K, V]]()
	case 3:
		return branchOf[K, V, [3]*node[K, V]]()
	case 4:
		return branchOf[K, V, [4]*node[K, V]]()
	case 5:
		return branchOf[K, V, [5]*node[K, V]]()
	case 6:
		return branchOf[K, V, [6]*node[K, V]]()
	case 7:
		return branchOf[K, V, [7]*node[K, V]]()
	case 8:
		return branchOf[K, V, [8]*node[K, V]]()
	case 9:
		return branchOf[K, V, [9]*node[K, V]]()
	case 10:
		return branchOf[K, V, [10]*node[K, V]]()
	case 11:
		return branchOf[K, V, [11]*node[K, V]]()
	case 12:
		return branchOf[K, V, [12]*node[K, V]]()
	case 13:
		return branchOf[K, V, [13]*node[K, V]]()
	case 14:
		return branchOf[K, V, [14]*node[K, V]]()
	case 15:
		return branchOf[K, V, [15]*node[K, V]]()
	default:
		return branchOf[K, V, [1 << width]*node[K, V]]()
	}
}

func allocBucket[K comparable, V any](entries int) *node[K, V] {
	switch entries {
	case 1:
		return smallOf[K, V, [1]Entry[K, V]]()
	case 2:
		return smallOf[K, V, [2]Entry[K, V]]()
	case 3:
		return smallOf[K, V, [3]Entry[K, V]]()
	case 4:
		return smallOf[K, V, [4]Entry[K, V]]()
	case 5:
		return smallOf[K, V, [5]Entry[K, V]]()
	case 6:
		return smallOf[K, V, [6]Entry[K, V]]()
	case 7:
		return smallOf[K, V, [7]Entry[K, V]]()
	case 8:
		return smallOf[K, V, [8]Entry[K, V]]()
	case 9:
		return largeOf[K, V, [9]Entry[K, V]]()
	case 10:
		return largeOf[K, V, [10]Entry[K, V]]()
	case 11:
		return largeOf[K, V, [11]Entry[K, V]]()
	case 12:
		return largeOf[K, V, [12]Entry[K, V]]()
	case 13:
		return largeOf[K, V, [13]Entry[K, V]]()
	case 14:
		return largeOf[K, V, [14]Entry[K, V]]()
	case 15:
		return largeOf[K, V, [15]Entry[K, V]]()
	default:
		return largeOf[K, V, [bucketMax]Entry[K, V]]()
	}
}
