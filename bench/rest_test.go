package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/bench/world"
)

// TestEachRowHasObjectsOfItsOwn: a row whose kind nobody makes would measure pods.
func TestEachRowHasObjectsOfItsOwn(t *testing.T) {
	rows := map[string]string{}
	for _, k := range restKinds {
		c := world.CodecOf(k.kind, k.perSet, k.form)
		object := string(c.Object(7, 7, 0))
		if k.library == coded {
			continue
		}
		require.NotContains(t, rows, object, "%s has the objects of %s", k.name, rows[object])
		rows[object] = k.name
		require.Equal(t, object, string(c.Object(7, 7, 0)), "%s: every process makes the same ones", k.name)
		require.Contains(t, openers, c.Resource, k.name)
	}
	require.Panics(t, func() { world.CodecOf("ConfigMap", 50, world.Protobuf) })
}
