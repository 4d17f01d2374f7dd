package ring_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/internal/ring"
)

// TestSharedIsTheEndOfASequence holds a ring against the whole sequence, in which element n is n.
func TestSharedIsTheEndOfASequence(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	r := ring.NewShared[uint64]()
	first, next := uint64(0), uint64(0) // of the model
	for step := range 20_000 {
		switch grows := step / 2000 % 2; {
		case random.IntN(500) == 0:
			for r.Len() > 0 {
				require.Equal(t, first, *r.Drop())
				first++
			}
			skipped := random.Uint64N(4)
			r.Skip(skipped)
			next += skipped
			first = next
		case first == next, random.IntN(4) > 2*grows:
			r.Add(&[]uint64{next}[0])
			next++
		default:
			require.Equal(t, first, *r.Drop())
			first++
		}
		require.Equal(t, []uint64{first, next}, []uint64{r.First(), r.Next()})
		require.Equal(t, int(next-first), r.Len())
		position := first + random.Uint64N(next-first+2) - min(first, random.Uint64N(3))
		got, ok := r.Read(position)
		require.Equal(t, position >= first, ok)
		require.Equal(t, ok && position < next, got != nil)
		if got != nil {
			require.Equal(t, position, *got)
			require.Equal(t, got, r.At(position))
		}
	}
}

// TestSharedIsReadWhileItMoves: readers beside a writer see each element once, in order, or learn
// that they have lost some.
func TestSharedIsReadWhileItMoves(t *testing.T) {
	const elements = 200_000
	r := ring.NewShared[uint64]()
	var running sync.WaitGroup
	for range 3 {
		running.Go(func() {
			for position := uint64(0); position < elements; {
				switch e, ok := r.Read(position); {
				case !ok:
					position = r.First()
				case e == nil:
				case *e != position:
					t.Errorf("at %d: %d", position, *e)
					return
				default:
					position++
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 1))
	for n := range uint64(elements) {
		r.Add(&n)
		for r.Len() > 1+random.IntN(1000) {
			r.Drop()
		}
	}
	running.Wait()
}
