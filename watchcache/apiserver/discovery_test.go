package apiserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/apiserver"
)

func TestDiscovery(t *testing.T) {
	r := newRig(t)
	apiserver.Serve(r.Server, watchcache.Resource[*appsv1.Deployment]{
		Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", ShortNames: []string{"deploy"},
	})
	client, err := discovery.NewDiscoveryClientForConfig(r.config(t, ""))
	require.NoError(t, err)
	version, err := client.ServerVersion()
	require.NoError(t, err)
	require.Equal(t, "v1.36.0", version.GitVersion)
	groups, err := restmapper.GetAPIGroupResources(client)
	require.NoError(t, err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for resource, kind := range map[string]string{"pods": "/v1, Kind=Pod", "deployments": "apps/v1, Kind=Deployment"} {
		got, err := mapper.KindFor(schema.GroupVersionResource{Resource: resource})
		require.NoError(t, err)
		require.Equal(t, kind, got.String())
	}
	list, err := client.ServerResourcesForGroupVersion("v1")
	require.NoError(t, err)
	var names []string
	for _, resource := range list.APIResources {
		names = append(names, resource.Name)
	}
	require.Equal(t, []string{"pods", "pods/binding", "pods/eviction", "pods/status", "configmaps"}, names)
	require.Equal(t, []string{"all"}, list.APIResources[0].Categories)

	for path, code := range map[string]int{
		"/healthz": 200, "/livez": 200, "/readyz": 200, "/version": 200, "/api": 200, "/apis": 200, "/api/v1/": 200,
		"/openapi/v3": 200, "/openapi/v3/api/v1": 200, "/openapi/v3/apis/apps/v1": 200, "/openapi/v3/apis/batch/v1": 404, "/openapi/v2": 404,
		"/apis/apps": 200, "/apis/apps/v1": 200, "/apis/apps/v2": 404, "/apis/batch": 404, "/": 404, "/metrics": 404,
		"/api/v1//pods": 404, "/api/v1/namespaces/ns/pods/a/b/c": 404, "/api/v1/namespaces//pods": 404,
		"/apis/apps/v1/deployments": 200, "/apis/apps/v1/namespaces/ns/deployments": 200, "/api/v1/namespaces/ns": 404,
	} {
		require.Equal(t, code, r.get(t, path).code, path)
	}
	require.Equal(t, http.StatusMethodNotAllowed, r.do(t, "POST", "/version", "").code)
}
