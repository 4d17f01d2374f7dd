package prom_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/apiserver"
)

func server(t *testing.T) (rest.Interface, func()) {
	api, err := apiserver.NewServer()
	require.NoError(t, err)
	listening := httptest.NewServer(api)
	client, err := listwatch.NewRESTClient(&rest.Config{Host: listening.URL}, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	return client, func() { api.Close(); listening.Close() }
}
