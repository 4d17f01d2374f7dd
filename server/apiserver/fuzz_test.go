package apiserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
)

// FuzzRequests: whatever a client sends, it gets an answer that is no fault of the server's.
func FuzzRequests(f *testing.F) {
	const apply, merge = "application/apply-patch+yaml", "application/merge-patch+json"
	for _, seed := range [][6]string{
		{"GET", "/api/v1/pods", "limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Miwic3RhcnQiOiIvZGVmYXVsdC9hXHUwMDAwIn0"},
		{"GET", "/api/v1/namespaces/ns/pods", "fieldSelector=spec.nodeName%3Dx&resourceVersion=2&resourceVersionMatch=Exact"},
		{"GET", "/api/v1/pods", "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"},
		{"GET", "/api/v1/pods", "", wireJSON + ";as=Table;g=meta.k8s.io;v=v1"},
		{"GET", "/api/v1/pods", "", wireProtobuf + ";q=0.5, application/cbor"},
		{"POST", "/api/v1/namespaces/ns/pods", "", "", wireJSON, `{"metadata":{"generateName":"x"}}`},
		{"POST", "/api/v1/namespaces/ns/pods", "dryRun=All", "application/yaml", "application/yaml", "metadata: {name: b}\nspec: {containers: [{name: c, image: i}]}"},
		{"PUT", "/api/v1/namespaces/ns/pods/a/status", "fieldValidation=Strict", "", wireJSON, `{"status":{}}`},
		{"PUT", "/apis/apps/v1/namespaces/ns/deployments/d/scale", "", "", wireJSON, `{"spec":{"replicas":2}}`},
		{"PATCH", "/api/v1/namespaces/ns/pods/a", "", "", merge, `{"spec":null}`},
		{"PATCH", "/api/v1/namespaces/ns/pods/a", "", "", "application/json-patch+json", `[{"op":"copy","from":"/metadata","path":"/metadata/labels"}]`},
		{"PATCH", "/api/v1/namespaces/ns/pods/a", "", "", "application/strategic-merge-patch+json", `{"spec":{"containers":[{"$patch":"delete","name":"c"}]}}`},
		{"PATCH", "/apis/apps/v1/namespaces/ns/deployments/d", "fieldManager=me&force=true", "", apply, `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"paused":true}}`},
		{"PATCH", "/apis/e2e.dev/v1/namespaces/ns/widgets/w", "fieldManager=me", "", apply, `{"apiVersion":"e2e.dev/v1","kind":"Widget","spec":{"a":[1]}}`},
		{"DELETE", "/api/v1/namespaces/ns/pods", "gracePeriodSeconds=-1", "", wireJSON, `{"preconditions":{"uid":""}}`},
		{"POST", "/api/v1/namespaces/ns/pods/a/eviction", "", "", wireJSON, `{"deleteOptions":{"dryRun":["All"]}}`},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", "", wireJSON, `{"spec":{}}`},
		{"GET", "/openapi/v2", "", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"},
		{"GET", "/apis", "", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"},
		{"GET", "/apis//v1/", ""},
		// An error that quotes a DEL.
		{"POST", "/api/v1/namespaces/ns/pods", "dryRun=\x7f", "application/yaml"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4], seed[5])
	}
	f.Fuzz(func(t *testing.T, method, path, query, accept, contentType, body string) {
		request, err := http.NewRequestWithContext(t.Context(), method, "/", strings.NewReader(body))
		if err != nil {
			t.Skip("no such method")
		}
		request.URL = &url.URL{Path: path, RawQuery: query}
		request.Header = http.Header{"Accept": {accept}, "Content-Type": {contentType}, "Accept-Encoding": {"gzip"}, "User-Agent": {accept}}
		s := newFuzzed(t)
		defer s.Close()
		if request.URL.Query().Has("watch") {
			s.Close()
		}
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, request)
		// Some errors are a 500 without a reason on a real server too.
		if answer.Code == http.StatusInternalServerError {
			var status metav1.Status
			require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &status), answer.Body.String())
			require.Equal(t, metav1.StatusReasonUnknown, status.Reason, answer.Body.String())
		}
	})
}

// newFuzzed is a server with an object of each of three kinds.
func newFuzzed(t testing.TB) *apiserver.Server {
	t.Helper()
	s, err := apiserver.NewServer(watchcache.WithFreshWait(0))
	require.NoError(t, err)
	_, err = apiserver.Serve(s, builtin.Pods()).Create(pod("a"))
	require.NoError(t, err)
	_, err = apiserver.Serve(s, builtin.Of[*appsv1.Deployment]()).Create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
	})
	require.NoError(t, err)
	widgets := apiserver.Resource[*unstructured.Unstructured]{Kind: watchcache.Kind[*unstructured.Unstructured]{Group: "e2e.dev", Version: "v1", Plural: "widgets", Kind: "Widget"}}
	_, err = apiserver.Serve(s, widgets).Create(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "ns", "name": "w"},
	}})
	require.NoError(t, err)
	return s
}

// TestDeepBodies: a body of a million nested lists or maps is refused, in each form of each write.
func TestDeepBodies(t *testing.T) {
	const depth = 1 << 20
	s := newFuzzed(t)
	defer s.Close()
	deep := map[string]string{
		"lists": strings.Repeat("[", depth) + strings.Repeat("]", depth),
		"maps":  strings.Repeat(`{"a":`, depth/2) + "1" + strings.Repeat("}", depth/2),
	}
	for name, value := range deep {
		for method, target := range map[string]string{
			"POST": "/apis/e2e.dev/v1/namespaces/ns/widgets", "PUT": "/apis/e2e.dev/v1/namespaces/ns/widgets/w",
			"PATCH": "/apis/e2e.dev/v1/namespaces/ns/widgets/w", "DELETE": "/apis/e2e.dev/v1/namespaces/ns/widgets/w",
		} {
			types := []string{wireJSON, "application/yaml"}
			if method == http.MethodPatch {
				types = []string{"application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"}
			}
			for _, contentType := range types {
				body := `{"apiVersion":"e2e.dev/v1","kind":"Widget","metadata":{"name":"w"},"spec":` + value + "}"
				if contentType == "application/json-patch+json" {
					body = `[{"op":"add","path":"/spec","value":` + value + "}]"
				}
				request := httptest.NewRequest(method, target+"?fieldManager=me", strings.NewReader(body))
				request.Header.Set("Content-Type", contentType)
				answer := httptest.NewRecorder()
				s.ServeHTTP(answer, request)
				require.Contains(t, []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity},
					answer.Code, "%s %s of %s", method, contentType, name)
				require.Less(t, answer.Body.Len(), 4<<10, "the answer does not repeat the body")
			}
		}
	}
}

// TestNestedBodiesAreCheap: a document of 9,000 levels took a merge 13 seconds and 766 MB. It is
// refused in each form of each write, and so is one that grows by parts. 200 levels are taken.
func TestNestedBodiesAreCheap(t *testing.T) {
	s := newFuzzed(t)
	defer s.Close()
	const widgets, widget, aPod = "/apis/e2e.dev/v1/namespaces/ns/widgets", "/apis/e2e.dev/v1/namespaces/ns/widgets/w", "/api/v1/namespaces/ns/pods/a"
	send := func(method, target, contentType, body string) (code int, allocated uint64) {
		request := httptest.NewRequest(method, target+"?fieldManager=me&dryRun=All", strings.NewReader(body))
		request.Header.Set("Content-Type", contentType)
		answer := httptest.NewRecorder()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.ServeHTTP(answer, request)
		runtime.ReadMemStats(&after)
		return answer.Code, after.TotalAlloc - before.TotalAlloc
	}
	var stored metav1.PartialObjectMetadata
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequest("GET", widget, nil))
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &stored))
	version := stored.ResourceVersion
	nested := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) }
	for _, c := range []struct{ method, target, contentType, form string }{
		{"PATCH", widget, "application/merge-patch+json", `{"spec":%}`},
		{"PATCH", aPod, "application/merge-patch+json", `{"spec":%}`},
		{"PATCH", aPod, "application/strategic-merge-patch+json", `{"spec":%}`},
		{"PATCH", widget, "application/json-patch+json", `[{"op":"add","path":"/spec","value":%}]`},
		{"PATCH", widget, "application/apply-patch+yaml", `{"apiVersion":"e2e.dev/v1","kind":"Widget","metadata":{"name":"w"},"spec":%}`},
		{"PUT", widget, wireJSON, `{"apiVersion":"e2e.dev/v1","kind":"Widget","metadata":{"name":"w","resourceVersion":"` + version + `"},"spec":%}`},
		{"POST", widgets, "application/yaml", `{"apiVersion":"e2e.dev/v1","kind":"Widget","metadata":{"name":"new"},"spec":%}`},
	} {
		name := c.method + " " + c.contentType
		code, allocated := send(c.method, c.target, c.contentType, strings.Replace(c.form, "%", nested(9000), 1))
		require.Equal(t, http.StatusBadRequest, code, name)
		require.Less(t, allocated, uint64(64<<20), name)
		code, _ = send(c.method, c.target, c.contentType, strings.Replace(c.form, "%", nested(200), 1))
		require.Contains(t, []int{http.StatusOK, http.StatusCreated}, code, name)
	}
	wide := `{"spec":{"list":[` + strings.TrimSuffix(strings.Repeat(nested(200)+",", 2500), ",") + `]}}`
	code, _ := send("PATCH", widget, "application/merge-patch+json", wide)
	require.Equal(t, http.StatusRequestEntityTooLarge, code)
	grow := func(at string) int {
		request := httptest.NewRequest("PATCH", widget, strings.NewReader(`[{"op":"add","path":"/spec`+at+`","value":`+nested(200)+`}]`))
		request.Header.Set("Content-Type", "application/json-patch+json")
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, request)
		return answer.Code
	}
	require.Equal(t, http.StatusOK, grow(""))
	require.Equal(t, http.StatusBadRequest, grow(strings.Repeat("/a", 100)))
}

// TestLongHeaders: net/http bounds the head of a request.
func TestLongHeaders(t *testing.T) {
	r := newRig(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/api/v1/pods", nil)
	require.NoError(t, err)
	request.Header.Set("Accept", strings.Repeat("application/json,", 10<<20/17))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return // the connection was closed before everything was sent
	}
	defer answer.Body.Close()
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answer.StatusCode)
}
