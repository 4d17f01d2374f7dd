package apiserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/restmapper"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

func TestDiscovery(t *testing.T) {
	r := newRig(t)
	apiserver.Serve(r.Server, builtin.Of[*appsv1.Deployment]())
	client, err := discovery.NewDiscoveryClientForConfig(r.config(t, ""))
	require.NoError(t, err)
	version, err := client.ServerVersion()
	require.NoError(t, err)
	require.Equal(t, "v1.36.3", version.GitVersion)
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
		"/openapi/v3": 200, "/openapi/v3/api/v1": 200, "/openapi/v3/apis/apps/v1": 200, "/openapi/v3/apis/batch/v1": 404, "/openapi/v2": 200,
		"/apis/apps": 200, "/apis/apps/v1": 200, "/apis/apps/v2": 404, "/apis/batch": 404, "/": 404, "/metrics": 404,
		"/api/v1//pods": 404, "/api/v1/namespaces/ns/pods/a/b/c": 404, "/api/v1/namespaces//pods": 404,
		"/apis/apps/v1/deployments": 200, "/apis/apps/v1/namespaces/ns/deployments": 200, "/api/v1/namespaces/ns": 404,
	} {
		require.Equal(t, code, r.get(t, path).code, path)
	}
	require.Equal(t, http.StatusMethodNotAllowed, r.do(t, "POST", "/version", "").code)
}

// TestAggregatedDiscovery: clients that ask for it get all groups in two requests, with what the
// other form tells.
func TestAggregatedDiscovery(t *testing.T) {
	r := newRig(t)
	apiserver.Serve(r.Server, builtin.Of[*appsv1.Deployment]())
	aggregated, err := discovery.NewDiscoveryClientForConfig(r.config(t, ""))
	require.NoError(t, err)
	unaggregated := *aggregated
	unaggregated.UseLegacyDiscovery = true
	groups, lists, err := aggregated.ServerGroupsAndResources()
	require.NoError(t, err)
	_, one, err := unaggregated.ServerGroupsAndResources()
	require.NoError(t, err)
	require.Len(t, groups, 4, "core, apps, authentication, authorization")
	described := func(lists []*metav1.APIResourceList) map[string]metav1.APIResource {
		all := map[string]metav1.APIResource{}
		for _, list := range lists {
			for _, resource := range list.APIResources {
				// Which client-go fills in from the aggregated form.
				resource.Group, resource.Version = "", ""
				if strings.Contains(resource.Name, "/") {
					resource.SingularName = ""
				}
				all[list.GroupVersion+" "+resource.Name] = resource
			}
		}
		return all
	}
	require.Equal(t, described(one), described(lists))
	answer := r.get(t, "/apis", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json")
	require.Equal(t, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", answer.header.Get("Content-Type"))
}

// TestOpenAPI by client-go's own readers of it, as kubectl has them.
func TestOpenAPI(t *testing.T) {
	r := newRig(t)
	apiserver.Serve(r.Server, builtin.Of[*appsv1.Deployment]())
	client, err := discovery.NewDiscoveryClientForConfig(r.config(t, ""))
	require.NoError(t, err)
	paths, err := client.OpenAPIV3().Paths()
	require.NoError(t, err)
	require.Contains(t, paths, "api/v1")
	document, err := openapi3.NewRoot(client.OpenAPIV3()).GVSpec(appsv1.SchemeGroupVersion)
	require.NoError(t, err)
	require.Contains(t, document.Components.Schemas, "io.k8s.api.apps.v1.Deployment")
	scale := document.Paths.Paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]
	require.NotNil(t, scale.Patch)
	swagger, err := client.OpenAPISchema()
	require.NoError(t, err)
	require.NotEmpty(t, swagger.GetDefinitions().GetAdditionalProperties())
}

// TestReviews by an unmodified clientset: everybody is an administrator.
func TestReviews(t *testing.T) {
	client := newRig(t).client(t, "")
	create := metav1.CreateOptions{}
	me, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, create)
	require.NoError(t, err)
	require.Contains(t, me.Status.UserInfo.Groups, "system:masters")
	access, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}},
	}, create)
	require.NoError(t, err)
	require.True(t, access.Status.Allowed)
	require.Equal(t, "pods", access.Spec.ResourceAttributes.Resource, "the question is answered with")
	rules, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{}, create)
	require.NoError(t, err)
	require.NotEmpty(t, rules.Status.ResourceRules)
	_, err = client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{}, create)
	require.NoError(t, err)
}
