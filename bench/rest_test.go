package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEachRowHasObjectsOfItsOwn: a row whose kind nobody makes would measure pods.
func TestEachRowHasObjectsOfItsOwn(t *testing.T) {
	rows := map[string]string{}
	for _, k := range restKinds {
		c := settings{kind: k.kind, perSet: k.perSet}.codec(k.form)
		object := string(c.object(7, 7, 0))
		if k.library == coded {
			continue
		}
		require.NotContains(t, rows, object, "%s has the objects of %s", k.name, rows[object])
		rows[object] = k.name
		require.Equal(t, object, string(c.object(7, 7, 0)), "%s: every process makes the same ones", k.name)
		require.Contains(t, openers, c.resource, k.name)
	}
	require.Panics(t, func() { settings{kind: "ConfigMap"}.codec(protobuf) })
}
