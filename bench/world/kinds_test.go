package world_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/bench/world"
)

func TestObjectsHaveTheirOwnNamesAndVersions(t *testing.T) {
	for _, kind := range slices.Concat(world.Kinds, world.RestKinds) {
		names := map[string]bool{}
		for i := range 100 {
			object := kind.Object(i, i, 0)
			data, err := object.Marshal()
			require.NoError(t, err, kind.Name)
			require.Equal(t, 1, strings.Count(string(data), world.Version(i)), "%s: the version is exchanged in place", kind.Name)
			names[object.GetNamespace()+"/"+object.GetName()] = true
			require.Equal(t, object.GetName(), kind.Object(i, i, 1).GetName(), "%s: a later state is of the same object", kind.Name)
			require.NotEqual(t, object, kind.Object(i, i, 1), "%s: a later state differs", kind.Name)
			if kind.Large {
				break
			}
		}
		require.True(t, kind.Large || len(names) == 100, kind.Name)
	}
}

func TestRandomPodsShareNothing(t *testing.T) {
	kind := world.KindOf("Pod of random strings")
	one, err := kind.Object(1, 1, 0).Marshal()
	require.NoError(t, err)
	other, err := kind.Object(1, 1, 1).Marshal()
	require.NoError(t, err)
	common := 0
	for at := 0; at+12 <= len(one); at += 12 {
		if strings.Contains(string(other), string(one[at:at+12])) {
			common += 12
		}
	}
	require.Less(t, float64(common)/float64(len(one)), 0.2, "name, owner and numbers are left")
}
