package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/bench/world"
)

func TestAPodHasTheSizeOfARealOne(t *testing.T) {
	total, managed := 0, 0
	for i := range 100 {
		pod := world.Pods{PerSet: 50}.Pod(i, i, 0)
		total += pod.Size()
		for _, entry := range pod.ManagedFields {
			managed += entry.Size()
		}
	}
	require.InDelta(t, 8_200, total/100, 200)
	require.InDelta(t, 0.45, float64(managed)/float64(total), 0.1)
}
