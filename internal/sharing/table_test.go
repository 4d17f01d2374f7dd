package sharing

import (
	"encoding/binary"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func numbered(i int) (k key) {
	binary.BigEndian.PutUint64(k[:], uint64(i))
	return k
}

// TestGenerationsReuseSpace: a table that begins a generation anew has the space of its last one,
// and holds none of its values. One that was mostly unused gives its space up.
func TestGenerationsReuseSpace(t *testing.T) {
	typ := reflect.TypeFor[*int]()
	fill := func(x *table, n int) {
		for i := range n {
			x.put(typ, numbered(i), reflect.ValueOf(new(int)), 0)
		}
	}
	has := func(x *table) (n int) {
		for i := range 100 {
			if x.room.Load().find(numbered(i)) >= 0 {
				n++
			}
		}
		return n
	}
	var x table
	fill(&x, 100)
	require.Equal(t, 100, has(&x))
	space := x.room.Load()
	x.room.Store(space.emptied())
	require.Same(t, space, x.room.Load())
	require.Zero(t, has(&x))
	for _, value := range space.values.Interface().([]*int) {
		require.Nil(t, value)
	}
	fill(&x, 100)
	require.Equal(t, 100, has(&x))
	require.Same(t, space, x.room.Load())
	x.room.Store(space.emptied())
	fill(&x, 10)
	require.Nil(t, space.emptied())
	require.Nil(t, (*room)(nil).emptied())
}

// TestValuesAreFoundWhileOthersAreKept: readers without a lock find a whole value of the key that
// they ask for, or none, also while the room grows and values in doubt are replaced.
func TestValuesAreFoundWhileOthersAreKept(t *testing.T) {
	type pair struct{ a, b *int }
	typ := reflect.TypeFor[pair]()
	const keys = 3000
	var x table
	var running sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		running.Go(func() {
			for i := 0; ; i = (i + 1) % keys {
				select {
				case <-done:
					return
				default:
				}
				r := x.room.Load()
				if at := r.find(numbered(i)); at >= 0 {
					if got := r.values.Index(at).Interface().(pair); got.a != got.b || *got.a != i {
						t.Errorf("key %d has the value %d", i, *got.a)
						return
					}
				}
			}
		})
	}
	for range 2 {
		for i := range keys {
			n := i
			x.put(typ, numbered(i), reflect.ValueOf(pair{&n, &n}), 0)
		}
	}
	close(done)
	running.Wait()
	for i := range keys {
		require.GreaterOrEqual(t, x.room.Load().find(numbered(i)), 0)
	}
}
