package trie

import "math/bits"

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
