package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/server/apiserver"
)

func TestParseTarget(t *testing.T) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for path, want := range map[string]apiserver.Target{
		"/api/v1/pods":                        {Resource: pods},
		"/api/v1/namespaces/ns/pods/a/status": {Resource: pods, Namespace: "ns", Name: "a", Subresource: "status"},
		"/apis/g/v2/namespaces/ns/widgets/w":  {Resource: schema.GroupVersionResource{Group: "g", Version: "v2", Resource: "widgets"}, Namespace: "ns", Name: "w"},
		"/api/v1/namespaces/ns":               {Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Name: "ns"},
	} {
		got, ok := apiserver.ParseTarget(path)
		require.True(t, ok, path)
		require.Equal(t, want, got, path)
	}
	for _, path := range []string{"/", "/api/v1", "/apis/g/v2", "/version", "/api/v1/pods/a/b/c", "/api/v1/namespaces//pods", "//api/v1/pods", "/api//v1/pods", "/api/v1//pods"} {
		_, ok := apiserver.ParseTarget(path)
		require.False(t, ok, path)
	}
}
