package trie

import (
	"math/bits"
	"unsafe"
)

// node is the head of a branch, a bucket or a list. The children or entries follow the head in the
// same object: a slice would be a second object per node, and another step on every read. A bucket
// may have room for more entries than it has. This file alone knows the layout:
//
//	branch  head, kids             slots != 0
//	bucket  head, tags, entries    slots == 0, count <= bucketMax; a byte of tag per entry
//	list    head, tag, []Entry     slots == 0, count > bucketMax; one tag for all
//
// The tags of a bucket take two words up to 16 entries, and four beyond. There is a list only when
// the hash is used up.
type node[K comparable, V any] struct {
	owner uint64 // the transaction that may change this node in place; 0 for none
	count uint32 // entries in it and below it
	slots uint32 // which slots of a branch have a kid
}

// The fields behind the head have no names: they are found by their offsets. The head is not
// embedded, and a branch is one type for all maps: every type of map would otherwise compile the
// promoted methods for each of the sizes below.

type branch[Kids any] struct {
	head node[struct{}, struct{}]
	_    Kids
}

type bucket[K comparable, V, Tags, Entries any] struct {
	head node[K, V]
	_    Tags
	_    Entries
}

type list[K comparable, V any] struct {
	head    node[K, V]
	_       [fewWords]uint64 // the tag
	entries []Entry[K, V]
}

const (
	headBytes = unsafe.Sizeof(node[int, int]{})
	wordBytes = unsafe.Sizeof(uint64(0))
	fewMax    = 16 // entries of the largest bucket with fewWords of tags
	fewWords  = fewMax / 8
	manyWords = bucketMax / 8
)

func (n *node[K, V]) at(offset uintptr) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(n), offset) }

// kid is the i-th child of a branch, by slot.
func (n *node[K, V]) kid(i int) *node[K, V] {
	return *(**node[K, V])(n.at(headBytes + uintptr(i)*unsafe.Sizeof(n)))
}

// kids are the children of a branch, by slot.
func (n *node[K, V]) kids() []*node[K, V] {
	return unsafe.Slice((**node[K, V])(n.at(headBytes)), bits.OnesCount32(n.slots))
}

// isMany reports whether n is a bucket with manyWords of tags; a count below wraps around. A
// misprediction makes a read a fourth slower. So fewWords is two and not one: in a trie of a
// hundred entries hardly a bucket has more.
func (n *node[K, V]) isMany() bool { return n.count-fewMax-1 < bucketMax-fewMax }

// few are the tags of a bucket that is not isMany. Of a list, the first one is that of all entries.
func (n *node[K, V]) few() *[fewWords]uint64 { return (*[fewWords]uint64)(n.at(headBytes)) }

// many are the tags of a bucket that isMany.
func (n *node[K, V]) many() *[manyWords]uint64 { return (*[manyWords]uint64)(n.at(headBytes)) }

func (n *node[K, V]) tag(i int) uint8 {
	switch {
	case n.isMany():
		return uint8(n.many()[i/8] >> (i % 8 * 8))
	case n.count > bucketMax:
		i = 0
	}
	return uint8(n.few()[i/8] >> (i % 8 * 8))
}

func (n *node[K, V]) setTag(i int, tag uint8) {
	words := n.few()[:]
	switch {
	case n.isMany():
		words = n.many()[:]
	case n.count > bucketMax:
		i = 0
	}
	word, at := &words[i/8], i%8*8
	*word = *word&^(0xff<<at) | uint64(tag)<<at
}

// copyTags gives n the first count tags of from, or all words of them if the layouts agree.
func (n *node[K, V]) copyTags(from *node[K, V], count int) {
	switch {
	case n.isMany() && from.isMany():
		*n.many() = *from.many()
	case n.count <= fewMax && from.count <= fewMax:
		*n.few() = *from.few()
	default:
		for i := range count {
			n.setTag(i, from.tag(i))
		}
	}
}

// entries are those of a bucket or a list.
func (n *node[K, V]) entries() []Entry[K, V] {
	if n.count > bucketMax {
		return *(*[]Entry[K, V])(n.at(headBytes + fewWords*wordBytes))
	}
	return unsafe.Slice(n.entry(0), n.count)
}

// entry is the i-th of a bucket.
func (n *node[K, V]) entry(i int) *Entry[K, V] {
	offset := headBytes + fewWords*wordBytes
	if n.isMany() {
		offset = headBytes + manyWords*wordBytes
	}
	return (*Entry[K, V])(n.at(offset + uintptr(i)*unsafe.Sizeof(Entry[K, V]{})))
}

// newBranch makes a branch of empty slots.
func newBranch[K comparable, V any](owner uint64, count, slots uint32) *node[K, V] {
	n := (*node[K, V])(allocBranch(bits.OnesCount32(slots)))
	n.owner, n.count, n.slots = owner, count, slots
	return n
}

// newBucket makes a bucket of count empty entries, or a list where they are too many for one.
func newBucket[K comparable, V any](owner uint64, count int) *node[K, V] {
	if count > bucketMax {
		n := &list[K, V]{entries: make([]Entry[K, V], count)}
		n.head.owner, n.head.count = owner, uint32(count)
		return &n.head
	}
	n := allocBucket[K, V](count)
	n.owner, n.count = owner, uint32(count)
	return n
}

func branchOf[Kids any]() unsafe.Pointer { return unsafe.Pointer(new(branch[Kids])) }

func bucketOf[K comparable, V, Tags, Entries any]() *node[K, V] {
	return &new(bucket[K, V, Tags, Entries]).head
}

func allocBranch(kids int) unsafe.Pointer {
	switch kids {
	case 1:
		return branchOf[[1]unsafe.Pointer]()
	case 2:
		return branchOf[[2]unsafe.Pointer]()
	case 3:
		return branchOf[[3]unsafe.Pointer]()
	case 4:
		return branchOf[[4]unsafe.Pointer]()
	case 5:
		return branchOf[[5]unsafe.Pointer]()
	case 6:
		return branchOf[[6]unsafe.Pointer]()
	case 7:
		return branchOf[[7]unsafe.Pointer]()
	case 8:
		return branchOf[[8]unsafe.Pointer]()
	case 9:
		return branchOf[[9]unsafe.Pointer]()
	case 10:
		return branchOf[[10]unsafe.Pointer]()
	case 11:
		return branchOf[[11]unsafe.Pointer]()
	case 12:
		return branchOf[[12]unsafe.Pointer]()
	case 13:
		return branchOf[[13]unsafe.Pointer]()
	case 14:
		return branchOf[[14]unsafe.Pointer]()
	case 15:
		return branchOf[[15]unsafe.Pointer]()
	default:
		return branchOf[[16]unsafe.Pointer]()
	}
}

// capacity is how many entries the bucket of count entries has room for: few sizes, each of which
// is compiled for every type of map.
func capacity(count int) int {
	switch {
	case count <= 2:
		return count
	case count <= 4:
		return 4
	case count <= 8:
		return 8
	case count <= 16:
		return 16
	case count <= 24:
		return 24
	case count <= bucketMax:
		return bucketMax
	}
	return count // of a list
}

func allocBucket[K comparable, V any](count int) *node[K, V] {
	switch capacity(count) {
	case 1:
		return bucketOf[K, V, [fewWords]uint64, [1]Entry[K, V]]()
	case 2:
		return bucketOf[K, V, [fewWords]uint64, [2]Entry[K, V]]()
	case 4:
		return bucketOf[K, V, [fewWords]uint64, [4]Entry[K, V]]()
	case 8:
		return bucketOf[K, V, [fewWords]uint64, [8]Entry[K, V]]()
	case 16:
		return bucketOf[K, V, [fewWords]uint64, [16]Entry[K, V]]()
	case 24:
		return bucketOf[K, V, [manyWords]uint64, [24]Entry[K, V]]()
	default:
		return bucketOf[K, V, [manyWords]uint64, [bucketMax]Entry[K, V]]()
	}
}
