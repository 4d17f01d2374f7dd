package sharing

import (
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGenerationsReuseSpace: a table that begins a generation anew has the space of its last one,
// and holds none of its values. One that was mostly unused gives its space up.
func TestGenerationsReuseSpace(t *testing.T) {
	typ := reflect.TypeFor[*int]()
	fill := func(x *table, n int) {
		for i := range n {
			var k key
			binary.BigEndian.PutUint64(k[:], uint64(i))
			x.add(typ, k, 1, reflect.ValueOf(new(int)), 0)
		}
	}
	var x table
	fill(&x, 100)
	space := x.values.Cap()
	x = x.emptied()
	require.Zero(t, x.len())
	require.Zero(t, x.bytes)
	require.Equal(t, space, x.values.Cap())
	for _, value := range x.values.Slice(0, space).Interface().([]*int) {
		require.Nil(t, value)
	}
	fill(&x, 100)
	require.Equal(t, 100, x.len())
	require.Equal(t, space, x.values.Cap())
	x = x.emptied()
	fill(&x, 10)
	require.Equal(t, table{}, x.emptied())
	require.Equal(t, table{}, table{}.emptied())
}
