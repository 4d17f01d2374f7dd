package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/apiserver"
)

func TestServingTwiceIsAMistake(t *testing.T) {
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.Serve(s, watchcache.Pods())
	require.Panics(t, func() { apiserver.Serve(s, watchcache.Pods()) })
	require.Panics(t, func() { apiserver.Serve(s, watchcache.Resource[*corev1.Pod]{}) })
}
