package ring_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/internal/ring"
)

// TestRingIsTheEndOfASequence holds a ring against the whole sequence, in which element n is n.
func TestRingIsTheEndOfASequence(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for capacity := 1; capacity <= 9; capacity++ {
		r := ring.New[uint64](capacity)
		first, next := uint64(0), uint64(0) // of the model
		for range 500 {
			if random.IntN(20) == 0 {
				skipped := random.Uint64N(4)
				r.Skip(skipped)
				next += skipped
				first = next
			} else {
				require.Equal(t, next-first == uint64(capacity), r.Full())
				r.Add(next)
				next++
				first = max(first, next-min(next, uint64(capacity)))
			}
			require.Equal(t, []uint64{first, next}, []uint64{r.First(), r.Next()})
			position, limit := random.Uint64N(next+3), random.IntN(capacity+2)
			got, ok := r.Read(position, limit, []uint64{7})
			require.Equal(t, position >= first, ok)
			want := []uint64{7}
			for n := position; ok && n < min(next, position+uint64(limit)); n++ {
				require.Equal(t, n, r.At(n))
				want = append(want, n)
			}
			require.Equal(t, want, got)
		}
	}
}
