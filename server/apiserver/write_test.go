package apiserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
)

func TestTypedClientWrites(t *testing.T) {
	everyFormat(t, func(t *testing.T, contentType string) {
		r, ctx := newRig(t), t.Context()
		pods := r.client(t, contentType).CoreV1().Pods("ns")
		a, err := pods.Create(ctx, pod("a", onNode("n1")), metav1.CreateOptions{})
		require.NoError(t, err)
		a.Status.Phase = corev1.PodRunning
		running, err := pods.UpdateStatus(ctx, a, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.Equal(t, corev1.PodRunning, running.Status.Phase)
		_, err = pods.UpdateStatus(ctx, a, metav1.UpdateOptions{})
		require.True(t, apierrors.IsConflict(err), "%v", err)
		_, err = pods.Create(ctx, pod("a"), metav1.CreateOptions{})
		require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
		tried, err := pods.Create(ctx, pod("b"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		require.NoError(t, err)
		require.Equal(t, corev1.PodPending, tried.Status.Phase)
		_, err = pods.Get(ctx, "b", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)

		err = pods.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")})
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.NoError(t, pods.Delete(ctx, "a", metav1.DeleteOptions{}))
		marked, err := pods.Get(ctx, "a", metav1.GetOptions{})
		require.NoError(t, err)
		require.EqualValues(t, 30, *marked.DeletionGracePeriodSeconds)
		require.NoError(t, pods.Delete(ctx, "a", *metav1.NewDeleteOptions(0)))
		require.True(t, apierrors.IsNotFound(pods.Delete(ctx, "a", metav1.DeleteOptions{})))

		configMaps := r.client(t, contentType).CoreV1().ConfigMaps("ns")
		for _, name := range []string{"x", "y", "z"} {
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"n": name}}}
			_, err := configMaps.Create(ctx, m, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		require.NoError(t, configMaps.Delete(ctx, "z", metav1.DeleteOptions{}))
		require.NoError(t, configMaps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "n=x"}))
		left, err := configMaps.List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, left.Items, 1)
		require.Equal(t, "y", left.Items[0].Name)
		require.NoError(t, configMaps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{ResourceVersion: left.ResourceVersion}))
		left, err = configMaps.List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		require.Empty(t, left.Items)
	})
}

func TestPatches(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	pods := r.client(t, wireJSON).CoreV1().Pods("ns")
	a := r.create(t, pod("a"))
	patch := func(kind types.PatchType, text string, sub ...string) (*corev1.Pod, error) {
		return pods.Patch(ctx, "a", kind, []byte(text), metav1.PatchOptions{}, sub...)
	}
	got, err := patch(types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"c","image":"new"}],"tolerations":[{"key":"k","operator":"Exists"}]}}`)
	require.NoError(t, err)
	require.Len(t, got.Spec.Containers, 1, "containers are merged by name")
	require.EqualValues(t, 2, got.Generation)
	got, err = patch(types.MergePatchType, `{"metadata":{"labels":{"app":"web"}}}`)
	require.NoError(t, err)
	require.Equal(t, "web", got.Labels["app"])
	got, err = patch(types.JSONPatchType, `[{"op":"remove","path":"/metadata/labels/app"}]`)
	require.NoError(t, err)
	require.Empty(t, got.Labels)
	got, err = patch(types.MergePatchType, `{"status":{"phase":"Running"},"spec":{"hostname":"h"}}`, "status")
	require.NoError(t, err)
	require.Equal(t, corev1.PodRunning, got.Status.Phase)
	require.Empty(t, got.Spec.Hostname)

	_, err = patch(types.MergePatchType, `{"metadata":{"resourceVersion":"`+a.ResourceVersion+`","labels":{"q":"1"}}}`)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	_, err = patch(types.JSONPatchType, `[{"op":"test","path":"/metadata/name","value":"b"}]`)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	for kind, text := range map[types.PatchType]string{
		types.MergePatchType:          `{`,
		types.StrategicMergePatchType: `{"metadata":{"name":"b"}}`,
	} {
		_, err = patch(kind, text)
		require.True(t, apierrors.IsBadRequest(err), "%s: %v", kind, err)
	}
	_, err = patch("text/plain", `{}`)
	require.True(t, apierrors.IsUnsupportedMediaType(err), "%v", err)
}

// TestAPatchCannotMultiply: each pair of copies doubles the object, and 30 pairs would fill
// any memory.
func TestAPatchCannotMultiply(t *testing.T) {
	r := newRig(t)
	_, err := r.configMaps.Create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: map[string]string{"k": "v"},
	})
	require.NoError(t, err)
	pair := `{"op":"copy","from":"/data","path":"/data/x"},{"op":"copy","from":"/data","path":"/data/y"},`
	body := "[" + strings.Repeat(pair, 30) + `{"op":"test","path":"/data/k","value":"v"}]`
	answer := r.do(t, "PATCH", "/api/v1/namespaces/ns/configmaps/a", body, "Content-Type", string(types.JSONPatchType))
	require.Equal(t, http.StatusUnprocessableEntity, answer.code)
	require.Contains(t, answer.status(t).Message, "copy")
}

func TestBodiesAreChecked(t *testing.T) {
	r := newRig(t)
	r.create(t, pod("a"))
	const one, all = "/api/v1/namespaces/ns/pods/a", "/api/v1/namespaces/ns/pods"
	for name, row := range map[string]struct {
		method, path, body, contentType string
		code                            int
	}{
		"no JSON":           {"POST", all, `{`, wireJSON, http.StatusBadRequest},
		"wrong form":        {"POST", all, `{"metadata":{"name":7}}`, wireJSON, http.StatusBadRequest},
		"wrong version":     {"POST", all, `{"apiVersion":"v2","metadata":{"name":"b"}}`, wireJSON, http.StatusBadRequest},
		"wrong kind":        {"POST", all, `{"kind":"Node","metadata":{"name":"b"}}`, wireJSON, http.StatusBadRequest},
		"other namespace":   {"POST", all, `{"metadata":{"name":"b","namespace":"c"}}`, wireJSON, http.StatusBadRequest},
		"no name":           {"POST", all, `{}`, wireJSON, http.StatusUnprocessableEntity},
		"no content type":   {"POST", all, `{"metadata":{"name":"b"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, "", http.StatusUnsupportedMediaType},
		"no YAML":           {"POST", all, `{a: [`, "application/yaml", http.StatusBadRequest},
		"XML":               {"POST", all, `<a/>`, "application/xml", http.StatusUnsupportedMediaType},
		"no media type":     {"POST", all, `{}`, ";", http.StatusUnsupportedMediaType},
		"no protobuf":       {"POST", all, `{}`, wireProtobuf, http.StatusBadRequest},
		"too large":         {"POST", all, strings.Repeat(" ", 3<<20+1), wireJSON, http.StatusRequestEntityTooLarge},
		"no namespace":      {"POST", "/api/v1/pods", `{"metadata":{"name":"b"}}`, wireJSON, http.StatusMethodNotAllowed},
		"other name":        {"PUT", one, `{"metadata":{"name":"b"}}`, wireJSON, http.StatusBadRequest},
		"absent":            {"PUT", all + "/never", `{"metadata":{"name":"never"}}`, wireJSON, http.StatusNotFound},
		"delete options":    {"DELETE", one, `{"gracePeriodSeconds":"x"}`, wireJSON, http.StatusBadRequest},
		"delete query":      {"DELETE", one + "?gracePeriodSeconds=x", ``, wireJSON, http.StatusBadRequest},
		"delete dry run":    {"DELETE", one, `{"dryRun":["Some"]}`, wireJSON, http.StatusUnprocessableEntity},
		"post to an object": {"POST", one, `{}`, wireJSON, http.StatusMethodNotAllowed},
		"put to all":        {"PUT", all, `{}`, wireJSON, http.StatusMethodNotAllowed},
		"subresource":       {"POST", one + "/log", `{}`, wireJSON, http.StatusNotFound},
		"no such status":    {"PUT", "/api/v1/namespaces/ns/configmaps/a/status", `{}`, wireJSON, http.StatusNotFound},
		"no such resource":  {"POST", "/api/v1/namespaces/ns/secrets", `{}`, wireJSON, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			answer := r.do(t, row.method, row.path, row.body, "Content-Type", row.contentType)
			require.Equal(t, row.code, answer.code, string(answer.body))
			if row.code != http.StatusCreated {
				status := answer.status(t)
				require.Less(t, len(status.Message), 300, "a message does not repeat the body")
			}
		})
	}
}

func TestDeleteQuery(t *testing.T) {
	r := newRig(t)
	r.create(t, pod("a", onNode("n1")))
	answer := r.do(t, "DELETE", "/api/v1/namespaces/ns/pods/a?gracePeriodSeconds=3&propagationPolicy=Foreground", "")
	require.Equal(t, http.StatusOK, answer.code, string(answer.body))
	var marked corev1.Pod
	require.NoError(t, json.Unmarshal(answer.body, &marked))
	require.EqualValues(t, 3, *marked.DeletionGracePeriodSeconds)
}

func TestReadOnlyCache(t *testing.T) {
	origin, mirror := newRig(t), newCache(t)
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.ServeCache(s, mirror, builtin.Pods().View)
	copied := &rig{Server: s, url: listen(t, s), web: http.DefaultClient}
	answer := copied.get(t, "/api/v1/pods")
	require.Equal(t, metav1.StatusReasonTooManyRequests, answer.status(t).Reason)
	require.Equal(t, "1", answer.header.Get("Retry-After"))
	require.Equal(t, http.StatusTooManyRequests, copied.get(t, "/api/v1/pods?watch=1").code)
	require.Equal(t, http.StatusTooManyRequests, copied.get(t, "/api/v1/namespaces/ns/pods/a").code)

	a := origin.create(t, pod("a"))
	require.NoError(t, mirror.Add(a))
	require.NoError(t, mirror.Bookmark("17"))
	require.Equal(t, "17", copied.get(t, "/api/v1/pods").pods(t).ResourceVersion)
	require.Equal(t, http.StatusOK, copied.get(t, "/api/v1/namespaces/ns/pods/a").code)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		require.Equal(t, http.StatusMethodNotAllowed, copied.do(t, method, "/api/v1/namespaces/ns/pods/a", "{}").code)
	}
	var list metav1.APIResourceList
	require.NoError(t, json.Unmarshal(copied.get(t, "/api/v1").body, &list))
	require.Equal(t, metav1.Verbs{"get", "list", "watch"}, list.APIResources[0].Verbs)
}

func TestDocumentsOverHTTP(t *testing.T) {
	r := newRig(t)
	apiserver.Serve(r.Server, apiserver.Resource[*unstructured.Unstructured]{Kind: watchcache.Kind[*unstructured.Unstructured]{
		Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget",
	}})
	const all = "/apis/example.com/v1/namespaces/ns/widgets"
	answer := r.do(t, "POST", all, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"n":1}}`)
	require.Equal(t, http.StatusCreated, answer.code, string(answer.body))
	require.Equal(t, http.StatusUnsupportedMediaType, r.do(t, "POST", all, "", "Content-Type", wireProtobuf).code)
	require.Equal(t, http.StatusNotAcceptable, r.get(t, all, "Accept", wireProtobuf).code)
	var list unstructured.UnstructuredList
	require.NoError(t, json.Unmarshal(r.get(t, all, "Accept", wireProtobuf+","+wireJSON).body, &list))
	require.Len(t, list.Items, 1)
	require.Equal(t, "Widget", list.Items[0].GetKind())
	patched := r.do(t, "PATCH", all+"/a", `{"spec":{"n":2}}`, "Content-Type", string(types.MergePatchType))
	require.Equal(t, http.StatusOK, patched.code, string(patched.body))
	require.Contains(t, string(patched.body), `"generation":2`)
	require.Equal(t, http.StatusUnsupportedMediaType,
		r.do(t, "PATCH", all+"/a", `{}`, "Content-Type", string(types.StrategicMergePatchType)).code)
}
