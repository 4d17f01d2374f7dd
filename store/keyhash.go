package store

import (
	"encoding/binary"
	"math/bits"

	"github.com/tributary-go/tributary/internal/trie"
)

// A server ends a name that it generates with a dash and five characters (metadata.generateName).
// Objects that differ in these alone are siblings, such as the pods of a ReplicaSet. A list has
// siblings side by side, so that they lie side by side in memory. Their hashes are equal in the
// lowest bits, which choose the first branches of the trie. So a walk of it finds them together:
// the collector's above all, which is half of the work of a program that copies what it reads.
//
// With twice as many bits, fifty siblings would be alone below a branch, three to a bucket.
const (
	suffix       = len("-x7k2p")
	siblingBits  = 8
	siblings     = uint64(1)<<siblingBits - 1
	siblingBytes = 8 // of each end of what siblings have in common
)

func hashKey(key string) uint64 { return besideSiblings(trie.HashString(key), key) }

// hashKeyBytes is [hashKey] of a key that is still in a buffer.
func hashKeyBytes(key []byte) uint64 { return besideSiblings(trie.HashBytes(key), key) }

// besideSiblings is the hash of a key with the bits of its siblings.
func besideSiblings[Key string | []byte](hash uint64, key Key) uint64 {
	n := len(key) - suffix
	if n < siblingBytes || key[n] != '-' {
		return hash
	}
	const odd = 0x9e37_79b9_7f4a_7c15
	common := word(key[:siblingBytes]) ^ bits.RotateLeft64(word(key[n-siblingBytes:n]), 29)
	return hash&^siblings | common*odd>>(64-siblingBits)
}

func word[Key string | []byte](key Key) uint64 {
	var b [8]byte
	copy(b[:], key)
	return binary.LittleEndian.Uint64(b[:])
}
