package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/store"
)

func TestKeys(t *testing.T) {
	for _, c := range []struct{ namespace, name, key string }{
		{"default", "web-0", "default/web-0"},
		{"", "node-1", "node-1"},
	} {
		require.Equal(t, c.key, store.Key(c.namespace, c.name))
		namespace, name, err := store.SplitKey(c.key)
		require.NoError(t, err)
		require.Equal(t, []string{c.namespace, c.name}, []string{namespace, name})
	}
	require.Equal(t, "ns/a", store.KeyOf(pod("a", 1)))
	for _, bad := range []string{"", "ns/", "a/b/c"} {
		_, _, err := store.SplitKey(bad)
		require.ErrorContains(t, err, "is neither")
	}
}
