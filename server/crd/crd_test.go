package crd_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/crd"
)

// serve is the URL of a server with the resource of testdata/shops.yaml.
func serve(t *testing.T) string {
	t.Helper()
	definitions, err := crd.Load(filepath.Join("testdata", "shops.yaml"))
	require.NoError(t, err)
	require.Len(t, definitions, 1)
	shops, err := crd.Resource(definitions[0])
	require.NoError(t, err)
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.Serve(server, shops)
	listener := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Close()
		listener.Close()
	})
	return listener.URL + "/apis/example.com/v1/namespaces/ns/shops"
}

type answer struct {
	code   int
	header http.Header
	body   map[string]any
}

func request(t *testing.T, method, url, contentType, body string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", contentType)
	if contentType == asTable {
		r.Header.Set("Accept", asTable)
	}
	got, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer got.Body.Close()
	a := answer{code: got.StatusCode, header: got.Header}
	doc, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(doc, &a.body), string(doc))
	return a
}

const asTable = "application/json;as=Table;g=meta.k8s.io;v=v1"

func post(t *testing.T, url, spec string) answer {
	t.Helper()
	return request(t, http.MethodPost, url, "application/json", shop(spec))
}

func shop(spec string) string {
	return `{"apiVersion":"example.com/v1","kind":"Shop","metadata":{"name":"a"},` + spec + `}`
}

// causes are the fields that an error names.
func (a answer) causes(t *testing.T) (fields []string) {
	t.Helper()
	require.Equal(t, http.StatusUnprocessableEntity, a.code, "%v", a.body)
	for _, cause := range a.body["details"].(map[string]any)["causes"].([]any) {
		fields = append(fields, cause.(map[string]any)["field"].(string))
	}
	return fields
}

// TestSchema: fields are pruned, with a warning, defaulted and validated.
func TestSchema(t *testing.T) {
	url := serve(t)
	got := post(t, url, `"spec":{"extra":1,"shelves":[{"name":"x"}],"rent":null},"status":{"branches":3}`)
	require.Equal(t, http.StatusCreated, got.code, "%v", got.body)
	require.Equal(t, map[string]any{
		"open": true, "branches": float64(1), "shelves": []any{map[string]any{"name": "x", "goods": "none"}},
	}, got.body["spec"], "a null that is not allowed is dropped")
	require.Equal(t, []string{`299 - "unknown field \"spec.extra\""`}, got.header.Values("Warning"))
	require.NotContains(t, got.body, "status", "it is written apart")

	strict := post(t, url+"?fieldValidation=Strict", `"spec":{"extra":1}`)
	require.Equal(t, http.StatusBadRequest, strict.code)
	require.Contains(t, strict.body["message"], `unknown field "spec.extra"`)

	for spec, field := range map[string]string{
		`"status":{}`: "spec",
		`"spec":{"name":"` + strings.Repeat("a", 11) + `"}`:     "spec.name",
		`"spec":{"branches":"many"}`:                            "spec.branches",
		`"spec":{"branches":-1}`:                                ".spec.branches",
		`"spec":{"shelves":[{"name":"x"},{"name":"x"}]}`:        "spec.shelves[1]",
		`"spec":{"shelves":[{"goods":"x"}]}`:                    "spec.shelves[0].name",
		`"spec":{"template":{"apiVersion":"v1"}}`:               "spec.template.kind",
		`"spec":{"name":"closed"}`:                              "spec",
		`"spec":{"shelves":{}}`:                                 "spec.shelves",
		`"spec":{"template":{"kind":"A","apiVersion":"a/b/c"}}`: "spec.template.apiVersion",
	} {
		require.Contains(t, post(t, url, spec).causes(t), field, spec)
	}
}

// TestTransitionRules: rules in CEL see the state before. What was invalid before is not judged
// again.
func TestTransitionRules(t *testing.T) {
	url := serve(t)
	require.Equal(t, http.StatusCreated, post(t, url, `"spec":{"branches":5}`).code)
	patch := func(body string) answer {
		return request(t, http.MethodPatch, url+"/a", string(types.MergePatchType), body)
	}
	require.Equal(t, []string{"spec"}, patch(`{"spec":{"branches":3}}`).causes(t))
	require.Equal(t, http.StatusOK, patch(`{"spec":{"branches":4}}`).code)
	require.Equal(t, []string{"spec.open"}, patch(`{"spec":{"open":"yes"}}`).causes(t)[:1])
}

// TestApplyMergesByKey: two managers have an item each of a list that is a map.
func TestApplyMergesByKey(t *testing.T) {
	url := serve(t)
	apply := func(manager, spec string) answer {
		return request(t, http.MethodPatch, url+"/a?fieldManager="+manager, string(types.ApplyYAMLPatchType), shop(spec))
	}
	require.Equal(t, http.StatusCreated, apply("one", `"spec":{"shelves":[{"name":"x","goods":"tea"}]}`).code)
	got := apply("two", `"spec":{"shelves":[{"name":"y"}]}`)
	require.Equal(t, http.StatusOK, got.code, "%v", got.body)
	require.Equal(t, []any{
		map[string]any{"name": "x", "goods": "tea"}, map[string]any{"name": "y", "goods": "none"},
	}, got.body["spec"].(map[string]any)["shelves"])
	require.Equal(t, http.StatusConflict, apply("two", `"spec":{"shelves":[{"name":"x","goods":"rice"}]}`).code)
	unknown := apply("two", `"spec":{"extra":"secret"}`)
	require.Equal(t, http.StatusInternalServerError, unknown.code)
	require.Contains(t, unknown.body["message"], ".spec.extra: field not declared in schema")
	require.NotContains(t, unknown.body["message"], "secret")
}

// TestScale: replicas are read and written where the definition says, with their owner.
func TestScale(t *testing.T) {
	url := serve(t)
	require.Equal(t, http.StatusCreated, post(t, url, `"spec":{"branches":2}`).code)
	scale := func(method, kind, body string) answer { return request(t, method, url+"/a/scale", kind, body) }
	got := scale(http.MethodGet, "", "")
	require.Equal(t, "Scale", got.body["kind"])
	require.Equal(t, map[string]any{"replicas": float64(2)}, got.body["spec"])
	wrote := scale(http.MethodPatch, string(types.MergePatchType), `{"spec":{"replicas":7}}`)
	require.Equal(t, map[string]any{"replicas": float64(7)}, wrote.body["spec"])
	object := request(t, http.MethodGet, url+"/a", "", "").body
	require.Equal(t, float64(7), object["spec"].(map[string]any)["branches"])
	require.Equal(t, float64(2), object["metadata"].(map[string]any)["generation"])
	replaced := scale(http.MethodPut, "application/json", `{"metadata":{"name":"a"},"spec":{"replicas":6}}`)
	require.Equal(t, http.StatusOK, replaced.code, "%v", replaced.body)
	require.Equal(t, []string{"spec"}, scale(http.MethodPatch, string(types.MergePatchType), `{"spec":{"replicas":1}}`).causes(t))
	require.Equal(t, http.StatusMethodNotAllowed, scale(http.MethodDelete, "", "").code)
	require.Equal(t, http.StatusNotFound, request(t, http.MethodGet, url+"/b/scale", "", "").code)
}

// TestColumns: each cell has the type of its column, or is null.
func TestColumns(t *testing.T) {
	url := serve(t)
	since := time.Now().Add(-3 * time.Hour).UTC().Format(time.RFC3339)
	got := post(t, url, `"spec":{"rent":2,"since":"`+since+`","name":"n","shelves":[{"name":"x"}]}`)
	require.Equal(t, http.StatusCreated, got.code, "%v", got.body)
	var table metav1.Table
	doc, err := json.Marshal(request(t, http.MethodGet, url, asTable, "").body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(doc, &table))
	require.Equal(t, []any{"a", true, float64(1), float64(2), `[{"goods":"none","name":"x"}]`, "3h", nil}, table.Rows[0].Cells)
	require.Equal(t, metav1.TableColumnDefinition{Name: "Branches", Type: "integer", Format: "int32",
		Description: "Custom resource definition column (in JSONPath format): .spec.branches"}, table.ColumnDefinitions[2])
	require.Equal(t, "What there is.", table.ColumnDefinitions[4].Description)
	require.EqualValues(t, 1, table.ColumnDefinitions[3].Priority)
	for selector, items := range map[string]int{"true": 1, "false": 0} {
		list := request(t, http.MethodGet, url+"?fieldSelector=spec.open="+selector, "", "")
		require.Len(t, list.body["items"], items)
	}
}

// TestResource: names and schema are the definition's.
func TestResource(t *testing.T) {
	definitions, err := crd.Load("testdata")
	require.NoError(t, err)
	require.Len(t, definitions, 1, "a folder has what its files have")
	r, err := crd.Resource(definitions[0])
	require.NoError(t, err)
	require.Equal(t, "shop", r.View.Singular)
	require.Equal(t, []string{"sh"}, r.View.ShortNames)
	require.Equal(t, []string{"all"}, r.View.Categories)
	require.Equal(t, "v1", r.Kind.Version, "the stored one")
	require.Contains(t, r.View.Schema.Properties["spec"].Properties, "shelves")
	metadata, err := json.Marshal(r.View.Schema.Properties["metadata"])
	require.NoError(t, err)
	require.Contains(t, string(metadata), `"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"`)
	require.Empty(t, definitions[0].Spec.Names.Singular, "the definition is left as it is")
}

// TestMistakes: each mistake in a file is named with its place.
func TestMistakes(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join("testdata", "shops.yaml"))
	require.NoError(t, err)
	for old, says := range map[string][2]string{
		"type: number}":                      {"type: numbers}", "document 2: shops.example.com: "},
		"name: shops":                        {"name: shop", `must be spec.names.plural+"."+spec.group`},
		"self.branches >":                    {"self.branch >", "undefined field 'branch'"},
		"scope:":                             {"scopes:", "document 2"},
		"apiextensions.k8s.io/v1\nkind: Cus": {"v2\nkind: Cus", "has no CustomResourceDefinition"},
		"metadata:\n":                        {"metadata:\n\t", "document 2"},
	} {
		file := filepath.Join(t.TempDir(), "shops.yaml")
		require.Contains(t, string(whole), old)
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(whole), old, says[0], 1)), 0o600))
		_, err := crd.Load(file)
		require.ErrorContains(t, err, says[1], old)
		require.ErrorContains(t, err, file)
	}
	_, err = crd.Load(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)

	definitions, err := crd.Load("testdata")
	require.NoError(t, err)
	unserved := definitions[0].DeepCopy()
	unserved.Spec.Versions[1].Served = false
	_, err = crd.Resource(unserved)
	require.ErrorContains(t, err, "shops.example.com: the version v1 is stored and not served")
	_, err = crd.Resource(&apiextensionsv1.CustomResourceDefinition{})
	require.ErrorContains(t, err, "no version has storage: true")
}

// TestManagedFieldsOfScale: who scales owns the replicas, and an apply of others conflicts.
func TestManagedFieldsOfScale(t *testing.T) {
	url := serve(t)
	require.Equal(t, http.StatusCreated, post(t, url, `"spec":{"branches":2}`).code)
	got := request(t, http.MethodPatch, url+"/a/scale?fieldManager=scaler", string(types.MergePatchType), `{"spec":{"replicas":3}}`)
	require.Equal(t, http.StatusOK, got.code, "%v", got.body)
	applied := request(t, http.MethodPatch, url+"/a?fieldManager=me", string(types.ApplyYAMLPatchType), shop(`"spec":{"branches":4}`))
	require.Equal(t, http.StatusConflict, applied.code)
	require.Contains(t, applied.body["message"], `"scaler"`)
}
