package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/watchcache"
)

func TestNilIsNamed(t *testing.T) {
	require.PanicsWithValue(t, "apiserver: Serve: the server is nil: make it with NewServer", func() {
		apiserver.Serve(nil, watchcache.Pods())
	})
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	require.PanicsWithValue(t, "apiserver: ServeCache: the cache is nil: make it with NewCache", func() {
		apiserver.ServeCache[*corev1.Pod](server, nil)
	})
}
