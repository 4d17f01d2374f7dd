package trie

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlace: a place is where a look-up finds the entry, and may be changed by the owner of its
// node and by nobody else.
func TestPlace(t *testing.T) {
	for name, hash := range map[string]func(string) uint64{"real": HashString, "all collide": func(string) uint64 { return 7 }} {
		t.Run(name, func(t *testing.T) {
			owner := NewOwner()
			w := Writer[string, int]{Hash: hash, Owner: owner}
			var m Map[string, int]
			for i := range 500 {
				key := strconv.Itoa(i)
				m, _, _ = w.Set(m, hash(key), key, i)
			}
			require.Equal(t, HashString("12"), HashBytes([]byte("12")))
			for i := range 500 {
				key := strconv.Itoa(i)
				p, ok := m.Place(hash(key), key)
				require.True(t, ok)
				also, ok := PlaceOfBytes(m, hash(key), []byte(key))
				require.True(t, ok)
				require.Same(t, p.Entry, also.Entry)
				require.True(t, p.Owned(owner))
				require.False(t, p.Owned(NewOwner()))
				p.Value = -i
				got, _ := m.Get(hash(key), key)
				require.Equal(t, -i, got)
			}
			_, ok := m.Place(hash("no"), "no")
			require.False(t, ok)
			_, ok = PlaceOfBytes(m, hash("no"), []byte("no"))
			require.False(t, ok)
			alone, _, _ := Writer[string, int]{Hash: hash}.Set(m, hash("1"), "1", 1)
			p, ok := alone.Place(hash("1"), "1")
			require.True(t, ok)
			require.False(t, p.Owned(0), "a single write's node is nobody's")
		})
	}
	_, ok := Map[string, int]{}.Place(1, "a")
	require.False(t, ok)
	_, ok = PlaceOfBytes(Map[string, int]{}, 1, []byte("a"))
	require.False(t, ok)
}
