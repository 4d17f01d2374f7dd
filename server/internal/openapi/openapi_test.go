package openapi

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// document is that of deployments, as a client reads it.
func document(t *testing.T, swagger bool) map[string]any {
	t.Helper()
	deployment := Kind{
		GroupVersionKind: apischema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Type:             reflect.TypeFor[*appsv1.Deployment](),
	}
	path := "/namespaces/{namespace}/deployments"
	made := Document("/apis/apps/v1", []Resource{
		{Kind: deployment, Path: path, Verbs: []string{"create", "get", "list", "patch", "watch"}},
		{Kind: deployment, Path: path, Verbs: []string{"patch"}, Subresource: "status"},
	})
	if swagger {
		made = Swagger(made)
	}
	text, err := json.Marshal(made)
	require.NoError(t, err)
	var read map[string]any
	require.NoError(t, json.Unmarshal(text, &read))
	return read
}

// at follows keys into a document.
func at(t *testing.T, value any, keys ...any) any {
	t.Helper()
	for _, key := range keys {
		switch k := key.(type) {
		case string:
			members, ok := value.(map[string]any)
			require.True(t, ok, "%v of %v", k, value)
			value = members[k]
		case int:
			value = value.([]any)[k]
		}
	}
	return value
}

// TestDocument: the schemas are those that the API server publishes, but for enums, list types and
// descriptions of plain types.
func TestDocument(t *testing.T) {
	d := document(t, false)
	schemas := at(t, d, "components", "schemas")
	deployment := at(t, schemas, "io.k8s.api.apps.v1.Deployment")
	require.Equal(t, []any{map[string]any{"group": "apps", "version": "v1", "kind": "Deployment"}},
		at(t, deployment, "x-kubernetes-group-version-kind"))
	spec := at(t, schemas, "io.k8s.api.apps.v1.DeploymentSpec")
	require.Equal(t, []any{"selector", "template"}, at(t, spec, "required"))
	require.Equal(t, map[string]any{
		"type": "integer", "format": "int32",
		"description": "Number of desired pods. This is a pointer to distinguish between explicit zero and not specified. Defaults to 1.",
	}, at(t, spec, "properties", "replicas"))
	strategy := at(t, spec, "properties", "strategy")
	require.Equal(t, "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy", at(t, strategy, "allOf", 0, "$ref"))
	require.Equal(t, "retainKeys", at(t, strategy, "x-kubernetes-patch-strategy"))
	containers := at(t, schemas, "io.k8s.api.core.v1.PodSpec", "properties", "containers")
	require.Equal(t, "name", at(t, containers, "x-kubernetes-patch-merge-key"))
	require.Equal(t, "array", at(t, containers, "type"))
	require.Equal(t, []any{map[string]any{"type": "string"}, map[string]any{"type": "number"}},
		at(t, schemas, "io.k8s.apimachinery.pkg.api.resource.Quantity", "oneOf"))
	operation := at(t, d, "paths", "/apis/apps/v1/namespaces/{namespace}/deployments", "post")
	require.Equal(t, "create", at(t, operation, "x-kubernetes-action"))
}

// TestSwagger: v2 has references with nothing but a description beside them, and no alternatives.
func TestSwagger(t *testing.T) {
	d := document(t, true)
	strategy := at(t, d, "definitions", "io.k8s.api.apps.v1.DeploymentSpec", "properties", "strategy").(map[string]any)
	require.Equal(t, "#/definitions/io.k8s.api.apps.v1.DeploymentStrategy", strategy["$ref"])
	require.NotEmpty(t, strategy["description"])
	require.NotContains(t, strategy, "allOf")
	require.NotContains(t, strategy, "default")
	require.Equal(t, map[string]any{"type": "string", "format": "int-or-string"},
		at(t, d, "definitions", "io.k8s.apimachinery.pkg.util.intstr.IntOrString"))
	patch := at(t, d, "paths", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status", "patch", "parameters", 2)
	require.Equal(t, map[string]any{"name": "fieldValidation", "in": "query", "type": "string", "uniqueItems": true}, patch)
}
