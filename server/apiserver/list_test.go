package apiserver_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tributary-go/tributary/server/watchcache"
)

// response is a whole answer.
type response struct {
	code   int
	header http.Header
	body   []byte
}

// do makes one request as it stands; headers are pairs.
func (r *rig) do(t testing.TB, method, path, body string, headers ...string) response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		request.Header.Set("Content-Type", wireJSON)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
	}
	answer, err := r.web.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	whole, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return response{answer.StatusCode, answer.Header, whole}
}

func (r *rig) get(t testing.TB, path string, headers ...string) response {
	t.Helper()
	return r.do(t, http.MethodGet, path, "", headers...)
}

// status is the error in an answer, which must agree with its HTTP code.
func (r response) status(t testing.TB) metav1.Status {
	t.Helper()
	var s metav1.Status
	require.NoError(t, json.Unmarshal(r.body, &s), string(r.body))
	require.Equal(t, "Status", s.Kind)
	require.EqualValues(t, r.code, s.Code)
	return s
}

func (r response) pods(t testing.TB) (list corev1.PodList) {
	t.Helper()
	require.Equal(t, http.StatusOK, r.code, string(r.body))
	require.NoError(t, json.Unmarshal(r.body, &list))
	require.Equal(t, metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, list.TypeMeta)
	return list
}

func namesOf(list corev1.PodList) (names []string) {
	for _, p := range list.Items {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}

func TestListSelects(t *testing.T) {
	r := newRig(t)
	r.create(t,
		pod("b", onNode("n1"), labelled("app", "web")), pod("a", onNode("n2")), pod("c"),
		pod("a", inNamespace("other"), onNode("n1")))
	for path, want := range map[string][]string{
		"/api/v1/pods":                                                                      {"ns/a", "ns/b", "ns/c", "other/a"},
		"/api/v1/namespaces/ns/pods":                                                        {"ns/a", "ns/b", "ns/c"},
		"/api/v1/namespaces/no/pods":                                                        nil,
		"/api/v1/pods?fieldSelector=spec.nodeName%3Dn1":                                     {"ns/b", "other/a"},
		"/api/v1/pods?fieldSelector=spec.nodeName%21%3Dn1":                                  {"ns/a", "ns/c"},
		"/api/v1/pods?fieldSelector=spec.nodeName%3D":                                       {"ns/c"},
		"/api/v1/namespaces/ns/pods?fieldSelector=spec.nodeName%3Dn1":                       {"ns/b"},
		"/api/v1/pods?fieldSelector=metadata.name%3Da":                                      {"ns/a", "other/a"},
		"/api/v1/pods?fieldSelector=metadata.name%3Da,metadata.namespace%3Dother":           {"other/a"},
		"/api/v1/namespaces/ns/pods?fieldSelector=metadata.name%3Dc":                        {"ns/c"},
		"/api/v1/pods?labelSelector=app%3Dweb":                                              {"ns/b"},
		"/api/v1/pods?labelSelector=app%21%3Dweb&fieldSelector=spec.nodeName%3Dn1&limit=10": {"other/a"},
	} {
		require.Equal(t, want, namesOf(r.get(t, path).pods(t)), path)
	}
	require.Contains(t, string(r.get(t, "/api/v1/namespaces/no/pods").body), `"items":[]`)
}

func TestListVersions(t *testing.T) {
	r := newRig(t, watchcache.WithWindow(3), watchcache.WithFreshWait(10*time.Millisecond))
	// Versions 2 to 6; the window begins after 3.
	r.create(t, pod("a"), pod("b"), pod("c"), pod("d"), pod("e"))
	list := func(query string) response { return r.get(t, "/api/v1/pods?"+query) }
	for query, want := range map[string]int{
		"": 5, "resourceVersion=0": 5, "resourceVersion=2": 5, "resourceVersion=6": 5,
		"resourceVersion=4&resourceVersionMatch=NotOlderThan": 5,
		"resourceVersion=4&resourceVersionMatch=Exact":        3,
		"resourceVersion=3&resourceVersionMatch=Exact":        2,
		// Pages of an exact state, without a match.
		"resourceVersion=4&limit=2": 2,
		"resourceVersion=0&limit=2": 5,
	} {
		require.Len(t, list(query).pods(t).Items, want, query)
	}
	require.Equal(t, "6", list("").pods(t).ResourceVersion)
	require.Equal(t, "4", list("resourceVersion=4&resourceVersionMatch=Exact").pods(t).ResourceVersion)

	gone := list("resourceVersion=2&resourceVersionMatch=Exact").status(t)
	require.Equal(t, metav1.StatusReasonExpired, gone.Reason)
	require.EqualValues(t, http.StatusGone, gone.Code)
	for _, query := range []string{"resourceVersion=100", "resourceVersion=100&resourceVersionMatch=Exact"} {
		tooLarge := list(query)
		require.Equal(t, "1", tooLarge.header.Get("Retry-After"))
		err := &apierrors.StatusError{ErrStatus: tooLarge.status(t)}
		require.EqualValues(t, http.StatusGatewayTimeout, err.ErrStatus.Code)
		require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge))
		require.EqualValues(t, 1, err.ErrStatus.Details.RetryAfterSeconds)
	}
}

// TestListVersionCountsForeignWrites: a version may come from another collection of the server.
func TestListVersionCountsForeignWrites(t *testing.T) {
	r := newRig(t)
	r.create(t, pod("a"))
	m, err := r.configMaps.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}})
	require.NoError(t, err)
	list := r.get(t, "/api/v1/pods?resourceVersion="+m.ResourceVersion).pods(t)
	require.Equal(t, m.ResourceVersion, list.ResourceVersion)
	require.Equal(t, []string{"ns/a"}, namesOf(
		r.get(t, "/api/v1/pods?resourceVersionMatch=Exact&resourceVersion="+m.ResourceVersion).pods(t)))
}

func TestPages(t *testing.T) {
	r := newRig(t)
	r.create(t, pod("a"), pod("b", inNamespace("other")), pod("c"), pod("d"), pod("e"))
	first := r.get(t, "/api/v1/pods?limit=2").pods(t)
	require.Equal(t, []string{"ns/a", "ns/c"}, namesOf(first))
	require.EqualValues(t, 3, *first.RemainingItemCount)
	_, err := r.pods.Remove("ns", "d")
	require.NoError(t, err)

	second := r.get(t, "/api/v1/pods?limit=2&continue="+first.Continue).pods(t)
	require.Equal(t, []string{"ns/d", "ns/e"}, namesOf(second), "pages show one state")
	require.Equal(t, first.ResourceVersion, second.ResourceVersion)
	last := r.get(t, "/api/v1/pods?limit=2&continue="+second.Continue).pods(t)
	require.Equal(t, []string{"other/b"}, namesOf(last))
	require.Empty(t, last.Continue)
	require.Nil(t, last.RemainingItemCount)

	selected := r.get(t, "/api/v1/pods?limit=1&fieldSelector=spec.nodeName%3D").pods(t)
	require.NotEmpty(t, selected.Continue)
	require.Nil(t, selected.RemainingItemCount, "nobody counts what is selected")

	r.pods.Compact()
	gone := r.get(t, "/api/v1/pods?limit=2&continue="+first.Continue).status(t)
	require.Equal(t, metav1.StatusReasonExpired, gone.Reason)
	fresh := r.get(t, "/api/v1/pods?limit=2&continue="+gone.Continue).pods(t)
	require.Equal(t, []string{"ns/e", "other/b"}, namesOf(fresh), "at the same key, in today's state")
	require.NotEqual(t, first.ResourceVersion, fresh.ResourceVersion)
}

func TestQueriesAreChecked(t *testing.T) {
	r := newRig(t)
	r.create(t, pod("a"))
	// Of version 2, after default/a.
	token := "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Miwic3RhcnQiOiIvZGVmYXVsdC9hXHUwMDAwIn0"
	for query, want := range map[string]int{
		token:                                           http.StatusOK,
		token + "&resourceVersion=0":                    http.StatusOK,
		token + "&resourceVersion=2":                    http.StatusBadRequest,
		"continue=x":                                    http.StatusBadRequest,
		"continue=bm90IGpzb24":                          http.StatusBadRequest,
		"resourceVersion=abc":                           http.StatusBadRequest,
		"resourceVersion=-1":                            http.StatusBadRequest,
		"limit=many":                                    http.StatusBadRequest,
		"labelSelector=%3D%3D":                          http.StatusBadRequest,
		"fieldSelector=a":                               http.StatusBadRequest,
		"fieldSelector=spec.color%3Dred":                http.StatusBadRequest,
		"includeObject=Some":                            http.StatusBadRequest,
		"resourceVersionMatch=Exact":                    http.StatusUnprocessableEntity,
		"sendInitialEvents=true":                        http.StatusUnprocessableEntity,
		"watch=1&sendInitialEvents=true":                http.StatusUnprocessableEntity,
		"watch=1&fieldSelector=x%3Dy":                   http.StatusBadRequest,
		"watch=1&resourceVersion=abc":                   http.StatusInternalServerError,
		token + "&resourceVersionMatch=a":               http.StatusUnprocessableEntity,
		"resourceVersion=0&resourceVersionMatch=Exact":  http.StatusUnprocessableEntity,
		"resourceVersion=1&resourceVersionMatch=Newish": http.StatusUnprocessableEntity,
		"unknown=parameter":                             http.StatusOK,
	} {
		answer := r.get(t, "/api/v1/pods?"+query)
		require.Equal(t, want, answer.code, "%s: %s", query, answer.body)
		if want != http.StatusOK {
			answer.status(t)
		}
	}
	require.Equal(t, http.StatusBadRequest, r.get(t, "/api/v1/namespaces/ns/pods/a?fieldSelector=metadata.name%3Db").code)
}

// decodeProtobuf reads a document with client-go's own decoder.
func decodeProtobuf(t testing.TB, doc []byte) runtime.Object {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), wireProtobuf)
	require.True(t, ok)
	obj, _, err := info.Serializer.Decode(doc, nil, nil)
	require.NoError(t, err)
	return obj
}

func TestProtobufListIsTheJSONList(t *testing.T) {
	r := newRig(t)
	for range 50 {
		generated := pod("", onNode("n1"), labelled("app", "web"))
		generated.GenerateName = "p-"
		r.create(t, generated)
	}
	want := r.get(t, "/api/v1/pods?limit=30").pods(t)
	answer := r.get(t, "/api/v1/pods?limit=30", "Accept", wireProtobuf)
	require.Equal(t, wireProtobuf, answer.header.Get("Content-Type"))
	require.True(t, bytes.HasPrefix(answer.body, []byte("k8s\x00")))
	got := decodeProtobuf(t, answer.body).(*corev1.PodList)
	want.TypeMeta, got.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
	require.Equal(t, want, *got)
}

func TestRepresentations(t *testing.T) {
	r := newRig(t)
	a := r.create(t, pod("a", labelled("app", "web")))
	const meta = ";g=meta.k8s.io;v=v1"
	for _, row := range []struct{ accept, contentType, kind string }{
		{"", wireJSON, "PodList"},
		{"*/*", wireJSON, "PodList"},
		{"application/*", wireJSON, "PodList"},
		{wireProtobuf + ",application/json", wireProtobuf, "PodList"},
		{"application/cbor,application/json", wireJSON, "PodList"},
		{"application/json;as=Table" + meta + ",application/json", wireJSON, "Table"},
		{"application/json;as=Table;g=meta.k8s.io;v=v1beta1,application/json", wireJSON, "PodList"},
		{"application/json;as=PartialObjectMetadataList" + meta, wireJSON, "PartialObjectMetadataList"},
		{wireProtobuf + ";as=PartialObjectMetadataList" + meta, wireProtobuf, "PartialObjectMetadataList"},
	} {
		answer := r.get(t, "/api/v1/pods", "Accept", row.accept)
		require.Equal(t, http.StatusOK, answer.code, row.accept)
		require.Equal(t, row.contentType, answer.header.Get("Content-Type"), row.accept)
		var kind metav1.TypeMeta
		switch row.contentType {
		case wireJSON:
			require.NoError(t, json.Unmarshal(answer.body, &kind))
		default:
			var envelope runtime.Unknown
			require.NoError(t, envelope.Unmarshal(answer.body[4:]))
			kind.Kind = envelope.Kind
		}
		require.Equal(t, row.kind, kind.Kind, row.accept)
	}
	for _, accept := range []string{"text/plain", "application/cbor", wireProtobuf + ";as=Table" + meta, "application/json;as=Pie" + meta} {
		require.Equal(t, metav1.StatusReasonNotAcceptable, r.get(t, "/api/v1/pods", "Accept", accept).status(t).Reason)
	}

	var table metav1.Table
	answer := r.get(t, "/api/v1/pods?includeObject=Object", "Accept", "application/json;as=Table"+meta)
	require.NoError(t, json.Unmarshal(answer.body, &table))
	require.Equal(t, a.ResourceVersion, table.ResourceVersion)
	require.Equal(t, []any{"a", "0/1", "Pending", "0"}, table.Rows[0].Cells[:4])
	var inRow corev1.Pod
	require.NoError(t, json.Unmarshal(table.Rows[0].Object.Raw, &inRow))
	require.Equal(t, types.UID(a.UID), inRow.UID)
}
