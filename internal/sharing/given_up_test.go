package sharing_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// seenEnough is more objects than a memo needs to give a type up.
const seenEnough = 70

// TestTypesThatAreGivenUpAgree: lists that were made before the generated code came are as if it
// had made them.
func TestTypesThatAreGivenUpAgree(t *testing.T) {
	random := source(t)
	fill := filler(random)
	for gvk, data := range messages(t, fill) {
		memo := newMemo(t)
		memo.GiveUp()
		for range seenEnough {
			require.NoError(t, memo.Unmarshal(data, newObject(t, gvk).(message)))
		}
		for range 10 {
			plain, ours := newObject(t, gvk).(message), newObject(t, gvk).(message)
			err := plain.Unmarshal(data)
			require.Equal(t, err == nil, memo.Unmarshal(data, ours) == nil, gvk)
			if err == nil {
				requireSame(t, gvk, plain, ours)
			}
			data = mutated(random, data)
		}
	}
}

func TestListsOfATypeThatIsGivenUpHaveNoSpareRoom(t *testing.T) {
	memo := newMemo(t)
	memo.GiveUp()
	var last discoveryv1.EndpointSlice
	for i := range seenEnough {
		made := &discoveryv1.EndpointSlice{Endpoints: make([]discoveryv1.Endpoint, 37)}
		for n := range made.Endpoints {
			made.Endpoints[n].Addresses = []string{fmt.Sprintf("10.%d.0.%d", i, n)}
		}
		data, err := made.Marshal()
		require.NoError(t, err)
		last = discoveryv1.EndpointSlice{}
		require.NoError(t, memo.Unmarshal(data, &last))
	}
	require.Len(t, last.Endpoints, 37)
	require.Equal(t, 37, cap(last.Endpoints))
}
