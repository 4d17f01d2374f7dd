package sources

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The news of a merge is for a plan that was made before it. Heard by the plan that was made of the
// merged state itself, it would lose that state.
func TestNewsOfAMergeAreOldOnceItIsTaken(t *testing.T) {
	f := newFeed(Custom(&randomSource{}))
	for range maxPending {
		f.push(state{})
	}
	require.Empty(t, f.merged)
	f.push(state{})
	require.Len(t, f.merged, 1)
	_, ok := f.pop()
	require.True(t, ok)
	require.Empty(t, f.merged)
	_, ok = f.pop()
	require.False(t, ok, "all states were merged into one")
}
