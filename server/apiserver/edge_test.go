package apiserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// TestRequestsAtTheEdge are answered as by kube-apiserver: what it refuses, and what a deletion
// answers with.
func TestRequestsAtTheEdge(t *testing.T) {
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	defer s.Close()
	builtin.Serve(s)
	do := func(method, path, body string, header ...string) (code int, kind string, object metav1.PartialObjectMetadata) {
		t.Helper()
		request := httptest.NewRequest(method, path, strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, request)
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &object), "%s", answer.Body)
		return answer.Code, object.Kind, object
	}
	const all, meta = "/api/v1/namespaces/default/configmaps", ";g=meta.k8s.io;v=v1"
	do("POST", all, `{"metadata":{"name":"z"}}`)
	_, _, last := do("POST", all, `{"metadata":{"name":"a"},"data":{"k":"v"}}`)
	for _, row := range []struct {
		method, path, body string
		header             []string
		code               int
	}{
		{"GET", "/" + all, "", nil, http.StatusNotFound},
		{"GET", all + "?timeout=x", "", nil, http.StatusBadRequest},
		{"GET", all + "?timeout=1ns", "", nil, http.StatusGatewayTimeout},
		{"POST", all + "?timeout=1ns", `{"metadata":{"name":"b"}}`, nil, http.StatusGatewayTimeout},
		{"GET", all + "/b", "", nil, http.StatusNotFound},
		{"GET", all + "?timeout=0s", "", nil, http.StatusOK},
		{"GET", all, "", []string{"Accept", "application/cbor"}, http.StatusNotAcceptable},
		{"GET", all, "", []string{"Accept", "application/json;as=PartialObjectMetadata" + meta}, http.StatusNotAcceptable},
		{"GET", all + "/a", "", []string{"Accept", "application/json;as=PartialObjectMetadataList" + meta}, http.StatusNotAcceptable},
		{"PATCH", all + "/a", "null", []string{"Content-Type", "application/merge-patch+json"}, http.StatusBadRequest},
		{"DELETE", all + "?resourceVersion=" + last.ResourceVersion, "", nil, http.StatusOK},
		{"GET", all + "/z", "", nil, http.StatusNotFound},
	} {
		code, _, _ := do(row.method, row.path, row.body, row.header...)
		require.Equal(t, row.code, code, "%s %s %v", row.method, row.path, row.header)
	}

	for path, want := range map[string]struct {
		kind       string
		finalizers []string
	}{
		"/api/v1/namespaces/default/serviceaccounts":        {"ServiceAccount", nil},
		"/api/v1/namespaces/default/secrets":                {"Status", nil},
		"/apis/storage.k8s.io/v1/storageclasses":            {"StorageClass", nil},
		"/apis/batch/v1/namespaces/default/jobs":            {"Job", []string{"orphan"}},
		"/api/v1/namespaces/default/replicationcontrollers": {"ReplicationController", []string{"orphan"}},
	} {
		code, _, made := do("POST", path, `{"metadata":{"name":"o"}}`)
		require.Equal(t, http.StatusCreated, code, path)
		_, kind, gone := do("DELETE", path+"/o", "")
		require.Equal(t, want.kind, kind)
		require.Equal(t, want.finalizers, gone.Finalizers, path)
		if kind != "Status" {
			require.NotEqual(t, made.ResourceVersion, gone.ResourceVersion, "the version is that of the deletion")
		}
	}
	_, _, event := do("POST", "/api/v1/namespaces/default/events", `{"metadata":{"name":"o"},"involvedObject":{"namespace":"default"}}`)
	require.Equal(t, "o", event.Name)
	_, kind, _ := do("DELETE", "/api/v1/namespaces/default/events/o?propagationPolicy=Orphan", "")
	require.Equal(t, "Status", kind, "an event has no dependents")
	for path, label := range map[string]string{
		"/api/v1/replicationcontrollers": "status.replicas", "/apis/resource.k8s.io/v1/resourceslices": "spec.driver",
		"/apis/certificates.k8s.io/v1/certificatesigningrequests": "spec.signerName",
	} {
		code, _, _ := do("GET", path+"?fieldSelector="+label+"%3Dx", "")
		require.Equal(t, http.StatusOK, code, path)
	}
}
