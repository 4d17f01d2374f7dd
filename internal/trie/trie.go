// Package trie is a persistent hash trie: an immutable map that is copied in O(1), written by copying
// the path to the changed entry, and compared with another version at the cost of what differs.
//
// Nodes are 32 wide. A node keeps its entries and its children apart (two bitmaps, two dense slices), and
// a child that shrinks to one entry is folded into its parent, so equal contents have equal shapes.
package trie

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

const (
	width    = 5                              // bits of the hash consumed per level
	hashBits = 64                             // below this depth a node is a plain list of colliding keys
	slotMask = uint64(1)<<width - 1           // the bits that choose a slot
	levels   = (hashBits + width - 1) / width // 13 levels of slots, then collisions
	listAt   = uint(levels * width)           // the shift at which a node is a list
)

// seed is one for the process: Diff relies on equal keys having equal hashes in every Map.
var seed = maphash.MakeSeed()

// Map is an immutable map from K to V. The zero value is empty. Copies are O(1) and share memory; any
// number of goroutines may read one at the same time.
type Map[K comparable, V any] struct {
	root *node[K, V]
	size int
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

type node[K comparable, V any] struct {
	owner    *owner // the transaction that may change this node in place
	dataMap  uint32 // slots that hold an entry
	childMap uint32 // slots that hold a child; disjoint from dataMap
	entries  []entry[K, V]
	children []*node[K, V]
}

// Len is the number of entries.
func (m Map[K, V]) Len() int { return m.size }

// Get returns the value under key.
func (m Map[K, V]) Get(key K) (V, bool) {
	return m.root.get(hashOf(key), 0, key)
}

// All yields every entry, in an order that is the same for equal contents within one process.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.root.all(yield) }
}

func hashOf[K comparable](key K) uint64 { return maphash.Comparable(seed, key) }

func slotBit(hash uint64, shift uint) uint32 { return 1 << (hash >> shift & slotMask) }

// rank is the position in a dense slice of the slot that bit stands for.
func rank(bitmap, bit uint32) int { return bits.OnesCount32(bitmap & (bit - 1)) }

func (n *node[K, V]) get(hash uint64, shift uint, key K) (value V, ok bool) {
	for ; n != nil; shift += width {
		if shift >= listAt {
			if i := n.find(key); i >= 0 {
				return n.entries[i].value, true
			}
			return value, false
		}
		bit := slotBit(hash, shift)
		if n.dataMap&bit != 0 {
			if e := &n.entries[rank(n.dataMap, bit)]; e.key == key {
				return e.value, true
			}
			return value, false
		}
		if n.childMap&bit == 0 {
			return value, false
		}
		n = n.children[rank(n.childMap, bit)]
	}
	return value, false
}

// find is the position of key in a list of collisions, or -1.
func (n *node[K, V]) find(key K) int {
	for i := range n.entries {
		if n.entries[i].key == key {
			return i
		}
	}
	return -1
}

func (n *node[K, V]) all(yield func(K, V) bool) bool {
	if n == nil {
		return true
	}
	for i := range n.entries {
		if !yield(n.entries[i].key, n.entries[i].value) {
			return false
		}
	}
	for _, c := range n.children {
		if !c.all(yield) {
			return false
		}
	}
	return true
}
