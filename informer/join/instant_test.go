package join

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/storetest"
)

// TestInstant: a writer counts in one store, then in the other, while they are read. The instant is
// one at which the first was at the second's count or one ahead. To read one store after the other
// would show the second ahead.
func TestInstant(t *testing.T) {
	for round := range 60 {
		writes, atOnce := round/3, 1+round%3 // in all, and between two reads
		first, second := store.NewIndexer[*corev1.Pod](), store.NewIndexer[*corev1.Pod]()
		written := 0
		write := func() {
			for i := 0; i < atOnce && written < writes; i++ {
				written++
				x := []*store.Indexer[*corev1.Pod]{second, first}[written%2]
				require.NoError(t, x.Add(storetest.Pod("counter", (written+1)/2)))
			}
		}
		snapshot := func(x *store.Indexer[*corev1.Pod]) part {
			return part{state: func() any { write(); return x.Snapshot() }}
		}
		count := func(state any) (n int) {
			if counter, ok := state.(store.Snapshot[*corev1.Pod]).Get("ns/counter"); ok {
				n, _ = strconv.Atoi(counter.ResourceVersion)
			}
			return n
		}
		states := (&View{parts: []part{snapshot(first), snapshot(second)}}).instant()
		require.Contains(t, []int{0, 1}, count(states[0])-count(states[1]), "%d writes, %d at once", writes, atOnce)
	}
}
