// Package trie is a persistent hash trie: an immutable map that is copied in O(1), written by
// copying the path to the changed entry, and compared with another version at the cost of the
// difference.
//
// Up to 32 entries are one bucket, whatever their hashes; more are a branch, 16 wide by four bits
// of the hash. So equal contents have equal shapes. A read visits, and a write copies, one object
// per level: 400 to 1,200 bytes for a write.
//
// The hash of a key is the caller's: [Hash], [HashString], or any other function by which equal
// keys have equal hashes in every version. A set of objects can be placed by their names and still
// be compared by pointer.
package trie

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

const (
	width     = 4                    // bits of the hash consumed per level
	slotMask  = uint64(1)<<width - 1 // the bits that choose a slot
	listAt    = uint(64)             // the depth in bits at which the hash is used up
	bucketMax = 32                   // entries of the largest bucket

	allSlots = uint32(1)<<(1<<width) - 1 // the slots of a branch with all its kids
	crowded  = 16 << width               // entries from which on a branch most likely has all kids
)

// seed is one for the process: Diff relies on equal keys having equal hashes in every Map.
var seed = maphash.MakeSeed()

// Hash is a hash of any key.
func Hash[K comparable](key K) uint64 { return maphash.Comparable(seed, key) }

// HashString is a hash of a string, quicker than [Hash].
func HashString(key string) uint64 { return maphash.String(seed, key) }

// HashBytes is [HashString] of a string that is still in a buffer.
func HashBytes(key []byte) uint64 { return maphash.Bytes(seed, key) }

// Map is an immutable map from K to V. The zero value is empty. Copies are O(1) and share memory;
// any number of goroutines may read one at the same time.
type Map[K comparable, V any] struct {
	root *node[K, V]
}

// Entry is a key and its value. An empty value at the end of a struct would cost a word, so it
// stands first.
type Entry[K comparable, V any] struct {
	_     [0]func() // never compared: a comparison would be compiled for each size of a bucket
	Value V
	Key   K
}

// Len is the number of entries.
func (m Map[K, V]) Len() int {
	if m.root == nil {
		return 0
	}
	return int(m.root.count)
}

// Get returns the value under key, which has the given hash.
func (m Map[K, V]) Get(hash uint64, key K) (value V, ok bool) {
	if e := m.root.find(hash, key); e != nil {
		return e.Value, true
	}
	return value, false
}

// Find is Get with the key as it is stored.
func (m Map[K, V]) Find(hash uint64, key K) (found Entry[K, V], ok bool) {
	if e := m.root.find(hash, key); e != nil {
		return *e, true
	}
	return found, false
}

// All yields every entry, in no particular order.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		m.root.each(func(entries []Entry[K, V]) bool {
			for i := range entries {
				if !yield(entries[i].Key, entries[i].Value) {
					return false
				}
			}
			return true
		})
	}
}

// Keys yields every key, in the order of All.
func (m Map[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		m.root.each(func(entries []Entry[K, V]) bool {
			for i := range entries {
				if !yield(entries[i].Key) {
					return false
				}
			}
			return true
		})
	}
}

func (n *node[K, V]) find(hash uint64, key K) *Entry[K, V] {
	if n = n.leaf(hash); n == nil {
		return nil
	}
	if n.count > bucketMax {
		if i := n.position(0, key); i >= 0 {
			return &n.entries()[i]
		}
		return nil
	}
	for same := n.candidates(tagOf(hash)); same != 0; same &= same - 1 {
		if e := n.entry(bits.TrailingZeros32(same)); e.Key == key {
			return e
		}
	}
	return nil
}

// position is where key is in a bucket or a list, or -1.
func (n *node[K, V]) position(tag uint8, key K) int {
	if n.count > bucketMax {
		for i, e := range n.entries() {
			if e.Key == key {
				return i
			}
		}
		return -1
	}
	for same := n.candidates(tag); same != 0; same &= same - 1 {
		if i := bits.TrailingZeros32(same); n.entry(i).Key == key {
			return i
		}
	}
	return -1
}

// candidates has a bit for each entry of a bucket that has the tag, and perhaps for one above such
// an entry. All words are read: the processor cannot predict where a loop would end, and a
// misprediction costs more.
func (n *node[K, V]) candidates(tag uint8) uint32 {
	all := uint32(1)<<n.count - 1
	want := uint64(tag) * 0x0101_0101_0101_0101 // the tag in each of eight bytes
	if !n.isMany() {
		words := n.few()
		return (zeroBytes(words[0]^want) | zeroBytes(words[1]^want)<<8) & all
	}
	words := n.many()
	return (zeroBytes(words[0]^want) | zeroBytes(words[1]^want)<<8 | zeroBytes(words[2]^want)<<16 | zeroBytes(words[3]^want)<<24) & all
}

// each calls visit with the entries of every bucket, until it returns false.
func (n *node[K, V]) each(visit func([]Entry[K, V]) bool) bool {
	switch {
	case n == nil:
		return true
	case n.slots == 0:
		return visit(n.entries())
	}
	for _, kid := range n.kids() {
		if !kid.each(visit) {
			return false
		}
	}
	return true
}

func slotBit(hash uint64, shift uint) uint32 { return 1 << (hash >> shift & slotMask) }

// rank is the position in a dense slice of the slot that bit stands for.
func rank(bitmap, bit uint32) int { return bits.OnesCount32(bitmap & (bit - 1)) }

// tagOf is the byte of a hash that a bucket keeps beside the entry: not one that chose the slots,
// at any likely depth.
func tagOf(hash uint64) uint8 { return uint8(hash >> 56) }

// zeroBytes has a bit for each byte of x that is zero, and perhaps for one above such a byte.
func zeroBytes(x uint64) uint32 {
	tops := (x - 0x0101_0101_0101_0101) &^ x & 0x8080_8080_8080_8080
	return uint32(tops >> 7 * 0x0102_0408_1020_4080 >> 56)
}

// Place is where a Map holds an entry, which may be read until the Map's transaction writes again.
// The zero value is no place.
type Place[K comparable, V any] struct {
	*Entry[K, V]
	owner uint64
}

// Owned reports whether the entry may be changed in place under owner, from [NewOwner]: no Map
// from before the transaction holds it. The new key must be equal in hash to the old one.
func (p Place[K, V]) Owned(owner uint64) bool { return p.owner == owner && owner != 0 }

// Place finds the place of key, which has the given hash.
func (m Map[K, V]) Place(hash uint64, key K) (p Place[K, V], ok bool) {
	n := m.root.leaf(hash)
	if n == nil {
		return p, false
	}
	if i := n.position(tagOf(hash), key); i >= 0 {
		return Place[K, V]{&n.entries()[i], n.owner}, true
	}
	return p, false
}

// PlaceOfBytes is [Map.Place] of a string that is still in a buffer.
func PlaceOfBytes[V any](m Map[string, V], hash uint64, key []byte) (p Place[string, V], ok bool) {
	n := m.root.leaf(hash)
	if n == nil {
		return p, false
	}
	if n.count > bucketMax {
		entries := n.entries()
		for i := range entries {
			if entries[i].Key == string(key) {
				return Place[string, V]{&entries[i], n.owner}, true
			}
		}
		return p, false
	}
	for same := n.candidates(tagOf(hash)); same != 0; same &= same - 1 {
		if e := n.entry(bits.TrailingZeros32(same)); e.Key == string(key) {
			return Place[string, V]{e, n.owner}, true
		}
	}
	return p, false
}

// leaf is the bucket or list in which a key of that hash would be; nil if there is none. Most
// crowded branches have a kid in every slot, and then the slot is the kid's index. The processor
// predicts that check, so it reads the kid before it has the bitmap.
func (n *node[K, V]) leaf(hash uint64) *node[K, V] {
	if n == nil {
		return nil
	}
	for rest := hash; n.slots != 0; rest >>= width {
		at := int(rest & slotMask)
		if n.count < crowded || n.slots != allSlots {
			bit := uint32(1) << at
			if n.slots&bit == 0 {
				return nil
			}
			at = rank(n.slots, bit)
		}
		n = n.kid(at)
	}
	return n
}
