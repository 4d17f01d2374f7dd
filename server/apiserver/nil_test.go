package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

func TestNilIsNamed(t *testing.T) {
	require.PanicsWithValue(t, "apiserver: Serve: the server is nil: make it with NewServer", func() {
		apiserver.Serve(nil, builtin.Pods())
	})
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	require.PanicsWithValue(t, "apiserver: ServeCache: the cache is nil: make it with NewCache", func() {
		apiserver.ServeCache(server, nil, builtin.Pods().View)
	})
}
