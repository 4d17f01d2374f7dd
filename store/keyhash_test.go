package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
)

// TestSiblings: keys that differ in a generated suffix alone have the lowest bits of their hashes
// in common. Sets of siblings are spread over these bits, and no two keys have one hash.
func TestSiblings(t *testing.T) {
	sets, hashes := map[uint64]int{}, map[uint64]string{}
	for set := range 2048 {
		parent := fmt.Sprintf("team-%d/web-%s", set%40, utilrand.SafeEncodeString(fmt.Sprint(1_000_000_000+set*7919)))
		var first uint64
		for i := range 20 {
			key := fmt.Sprintf("%s-%s", parent, utilrand.SafeEncodeString(fmt.Sprint(10000+i)))
			hash := hashKey(key)
			other, taken := hashes[hash]
			require.False(t, taken, "%s and %s", key, other)
			hashes[hash] = key
			if i == 0 {
				first = hash
				sets[hash&siblings]++
			}
			require.Equal(t, first&siblings, hash&siblings, "%s beside %s", key, hashes[first])
			require.Equal(t, hash, hashKeyBytes([]byte(key)))
		}
	}
	for low, n := range sets {
		require.Less(t, n, 32, "sets with the bits %x", low) // 8 on average
	}
	require.Greater(t, len(sets), 240)
}

// TestShortKeys: no key is too short to be hashed.
func TestShortKeys(t *testing.T) {
	for n := range 40 {
		for _, letter := range []string{"-", "a"} {
			key := strings.Repeat(letter, n)
			require.Equal(t, hashKey(key), hashKeyBytes([]byte(key)))
		}
	}
}
