package apiserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
)

// applyRig serves config maps to a clientset.
func applyRig(t *testing.T) (*collection.Collection[*corev1.ConfigMap], typedcorev1.ConfigMapInterface) {
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	origin := apiserver.Serve(s, builtin.Of[*corev1.ConfigMap]())
	client, err := kubernetes.NewForConfig(&rest.Config{Host: listen(t, s), UserAgent: "tester/1.0"})
	require.NoError(t, err)
	return origin, client.CoreV1().ConfigMaps("ns")
}

func by(manager string) metav1.ApplyOptions { return metav1.ApplyOptions{FieldManager: manager} }

// owners are the managers of an object, each with what it does.
func owners(obj metav1.Object) (all []string) {
	for _, entry := range obj.GetManagedFields() {
		all = append(all, entry.Manager+" "+string(entry.Operation))
	}
	return all
}

func TestApply(t *testing.T) {
	ctx := t.Context()
	_, maps := applyRig(t)
	data := func(data map[string]string) *applycorev1.ConfigMapApplyConfiguration {
		return applycorev1.ConfigMap("a", "ns").WithData(data)
	}
	_, err := maps.Apply(ctx, data(nil).WithUID("gone"), by("first"))
	require.True(t, apierrors.IsConflict(err), "what is gone is not made again: %v", err)
	created, err := maps.Apply(ctx, data(map[string]string{"x": "1", "y": "1"}), by("first"))
	require.NoError(t, err)
	require.NotEmpty(t, created.UID)
	require.Equal(t, []string{"first Apply"}, owners(created))

	same, err := maps.Apply(ctx, data(map[string]string{"x": "1", "y": "1"}), by("first"))
	require.NoError(t, err)
	require.Equal(t, created.ResourceVersion, same.ResourceVersion, "nothing changes, nothing is written")
	_, err = maps.Apply(ctx, data(nil).WithUID("another"), by("first"))
	require.True(t, apierrors.IsInvalid(err), "%v", err)

	_, err = maps.Apply(ctx, data(map[string]string{"x": "2"}), by("second"))
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, `conflict with "first": .data.x`)
	shared, err := maps.Apply(ctx, data(map[string]string{"x": "1", "z": "2"}), by("second"))
	require.NoError(t, err, "both say the same")
	require.Equal(t, map[string]string{"x": "1", "y": "1", "z": "2"}, shared.Data)

	dropped, err := maps.Apply(ctx, data(map[string]string{"y": "1"}), by("first"))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"x": "1", "y": "1", "z": "2"}, dropped.Data, "the second one holds x")
	taken, err := maps.Apply(ctx, data(map[string]string{"y": "3"}), metav1.ApplyOptions{FieldManager: "second", Force: true})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"y": "3"}, taken.Data, "x and z were the second one's alone")

	// An update takes what it changes.
	update := taken.DeepCopy()
	update.Data["y"] = "4"
	updated, err := maps.Update(ctx, update, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Contains(t, owners(updated), "tester Update")
	_, err = maps.Apply(ctx, data(map[string]string{"y": "3"}), by("second"))
	require.ErrorContains(t, err, `conflict with "tester" using v1: .data.y`)
	again, err := maps.Update(ctx, updated, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, updated.ResourceVersion, again.ResourceVersion, "nothing changes, nothing is written")

	// So does a patch.
	patched, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"p":"1"}}`), metav1.PatchOptions{FieldManager: "patcher"})
	require.NoError(t, err)
	require.Contains(t, owners(patched), "patcher Update")
}

// TestApplyToWhatNobodyApplied: it is owned by somebody, who does not come back.
func TestApplyToWhatNobodyApplied(t *testing.T) {
	origin, maps := applyRig(t)
	stored, err := origin.Create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: map[string]string{"x": "1"},
	})
	require.NoError(t, err)
	require.Empty(t, stored.ManagedFields)
	_, err = maps.Apply(t.Context(), applycorev1.ConfigMap("a", "ns").WithData(map[string]string{"x": "2"}), by("me"))
	require.ErrorContains(t, err, `conflict with "before-first-apply" using v1: .data.x`)
	labelled, err := maps.Apply(t.Context(), applycorev1.ConfigMap("a", "ns").WithLabels(map[string]string{"l": "1"}), by("me"))
	require.NoError(t, err)
	require.Equal(t, stored.Data, labelled.Data)
	require.Equal(t, stored.UID, labelled.UID)
	gone, err := maps.Apply(t.Context(), applycorev1.ConfigMap("a", "ns"), by("me"))
	require.NoError(t, err)
	require.Empty(t, gone.Labels)
	require.Empty(t, stored.ManagedFields, "what is stored is not edited in place")

	// From Go, the object is followed like any other.
	next := labelled.DeepCopy()
	next.ResourceVersion = ""
	next.Data["x"] = "7"
	written, err := origin.Update(next)
	require.NoError(t, err)
	require.Contains(t, owners(written), "unknown Update")
	require.Empty(t, written.Kind, "as every stored object of a Go type")
}

// TestApplyKnowsTheSchema: lists are merged by their keys, and a field that the kind does not have
// is refused. A manager whose last field was taken is gone.
func TestApplyKnowsTheSchema(t *testing.T) {
	r := newRig(t)
	apply := func(manager, spec string) response {
		return r.do(t, "PATCH", "/api/v1/namespaces/ns/pods/a?force=1&fieldManager="+manager,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":`+spec+`}`, "Content-Type", string(types.ApplyYAMLPatchType))
	}
	require.Equal(t, http.StatusCreated, apply("one", `{"containers":[{"name":"c","image":"i"}]}`).code)
	got := apply("two", `{"containers":[{"name":"c","image":"j"}],"tolerations":[{"key":"k","operator":"Exists"}]}`)
	require.Equal(t, http.StatusOK, got.code, string(got.body))
	stored, err := r.pods.Get("ns", "a")
	require.NoError(t, err)
	require.Equal(t, "j", stored.Spec.Containers[0].Image)
	require.Equal(t, []string{"one Apply", "two Apply"}, owners(stored), "the first one has the container's name")

	got = apply("one", `{"containers":[{"name":"c","image":"i","extra":"secret"}]}`)
	require.Contains(t, got.status(t).Message, `.spec.containers[name="c"].extra: field not declared in schema`)
	require.NotContains(t, string(got.body), "secret")

	config := func(manager, data string) response {
		return r.do(t, "PATCH", "/api/v1/namespaces/ns/configmaps/a?force=1&fieldManager="+manager,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":`+data+`}`, "Content-Type", string(types.ApplyYAMLPatchType))
	}
	require.Equal(t, http.StatusCreated, config("one", `{"k":"v"}`).code)
	require.Equal(t, http.StatusOK, config("two", `{"k":"w"}`).code)
	taken, err := r.configMaps.Get("ns", "a")
	require.NoError(t, err)
	require.Equal(t, []string{"two Apply"}, owners(taken))
}

// TestClientsOwnFromTheStart: a create and an update have owners; a write that changes nothing
// leaves their times.
func TestClientsOwnFromTheStart(t *testing.T) {
	_, maps := applyRig(t)
	created, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"tester Update"}, owners(created))
	next := created.DeepCopy()
	next.Data["l"] = "w"
	updated, err := maps.Update(t.Context(), next, metav1.UpdateOptions{FieldManager: "other"})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"tester Update", "other Update"}, owners(updated))
	same, err := maps.Update(t.Context(), updated, metav1.UpdateOptions{FieldManager: "third"})
	require.NoError(t, err)
	require.Equal(t, updated, same)
	_, err = maps.Apply(t.Context(), applycorev1.ConfigMap("a", "ns").WithData(map[string]string{"k": "x"}), by("me"))
	require.ErrorContains(t, err, `conflict with "tester" using v1: .data.k`)
}

// TestApplyLeavesStatusAlone: a status is applied by itself, or written by its own managers, which
// then own it.
func TestApplyLeavesStatusAlone(t *testing.T) {
	r := newRig(t)
	r.create(t, pod("a", onNode("n1")))
	const path = "/api/v1/namespaces/ns/pods/a"
	apply := func(path, body string) response {
		return r.do(t, "PATCH", path, body, "Content-Type", string(types.ApplyYAMLPatchType))
	}
	const query = "?fieldManager=me"
	got := apply(path+query, "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels: {l: x}\nstatus: {message: mine}\n")
	require.Equal(t, http.StatusOK, got.code, string(got.body))
	require.NotContains(t, string(got.body), "mine")
	require.Equal(t, http.StatusBadRequest, apply(path+"/status"+query, "apiVersion: v1\nkind: Pod\n").code)
	got = apply(path+"/status"+query, "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {m: z}}\nstatus: {message: mine}\n")
	require.Contains(t, string(got.body), `"message":"mine"`)
	got = apply("/api/v1/namespaces/ns/pods/b/status"+query, "apiVersion: v1\nkind: Pod\nmetadata: {name: b}\n")
	require.Equal(t, http.StatusNotFound, got.code)
	got = r.do(t, "PATCH", path+"/status", `{"status":{"message":"theirs"}}`, "Content-Type", string(types.MergePatchType))
	require.Contains(t, string(got.body), `"subresource":"status"`)
}

func TestApplyErrors(t *testing.T) {
	r := newRig(t)
	stored := r.create(t, pod("a", onNode("n1")))
	for name, row := range map[string]struct {
		query, body string
		code        int
	}{
		"no manager":      {"", "apiVersion: v1\nkind: Pod\n", http.StatusUnprocessableEntity},
		"not YAML":        {"?fieldManager=me", "{", http.StatusBadRequest},
		"not an object":   {"?fieldManager=me", "[secret]", http.StatusBadRequest},
		"no kind":         {"?fieldManager=me", "metadata: {}", http.StatusBadRequest},
		"another kind":    {"?fieldManager=me", "apiVersion: v1\nkind: Node\n", http.StatusBadRequest},
		"another name":    {"?fieldManager=me", "apiVersion: v1\nkind: Pod\nmetadata: {name: b}", http.StatusBadRequest},
		"another place":   {"?fieldManager=me&force=1", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}", http.StatusBadRequest},
		"a wrong form":    {"?fieldManager=me&force=1", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {nodeName: [secret]}", http.StatusInternalServerError},
		"managed fields":  {"?fieldManager=me", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, managedFields: []}", http.StatusBadRequest},
		"an old version":  {"?fieldManager=me", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, resourceVersion: '1'}", http.StatusConflict},
		"another version": {"?fieldManager=me", "apiVersion: v2\nkind: Pod\n", http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.do(t, "PATCH", "/api/v1/namespaces/ns/pods/a"+row.query, row.body, "Content-Type", string(types.ApplyYAMLPatchType))
			require.Equal(t, row.code, got.code, string(got.body))
			require.NotContains(t, got.status(t).Message, "secret", "a message does not repeat the body")
		})
	}
	now, err := r.pods.Get("ns", "a")
	require.NoError(t, err)
	require.True(t, now == stored)
}

func TestApplyDocument(t *testing.T) {
	r := newRig(t)
	widgets := apiserver.Serve(r.Server, apiserver.Resource[*unstructured.Unstructured]{Kind: watchcache.Kind[*unstructured.Unstructured]{
		Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", ClusterScoped: true,
	}})
	for i, want := range []struct {
		code       int
		generation int64
		spec       string
	}{{http.StatusCreated, 1, "{n: 1}"}, {http.StatusOK, 1, "{n: 1}"}, {http.StatusOK, 2, "{n: 2}"}} {
		got := r.do(t, "PATCH", "/apis/example.com/v1/widgets/a?fieldManager=me", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: "+want.spec,
			"Content-Type", string(types.ApplyYAMLPatchType))
		require.Equal(t, want.code, got.code, "%d: %s", i, got.body)
		stored, err := widgets.Get("", "a")
		require.NoError(t, err)
		require.Equal(t, want.generation, stored.GetGeneration(), i)
		require.Equal(t, "Widget", stored.GetKind())
	}
}
