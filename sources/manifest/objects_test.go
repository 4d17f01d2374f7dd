package manifest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/sources/manifest"
)

var (
	widgets    = manifest.Objects[unstructured.Unstructured](schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	configMaps = manifest.Objects[corev1.ConfigMap](corev1.SchemeGroupVersion.WithKind("ConfigMap"))
)

func TestObjectsThatAreNone(t *testing.T) {
	const list = `{"apiVersion": "example.com/v1", "kind": "WidgetList", "items": [`
	for _, row := range []struct{ name, manifest, want string }{
		{"null", list + "null]}", "item 1: a field has a value that its type does not have"},
		{"a number", list + "5]}", "item 1: a number where an object is expected"},
		{"no name", list + "{}]}", "item 1: a Widget needs a name"},
		{"another kind", list + `{"kind": "Gadget"}]}`, "item 1: apiVersion and kind of an item must be example.com/v1 and Widget"},
		{"a slash", list + `{"metadata": {"name": "hunter2/x"}}]}`, "item 1: metadata.name may not contain '/'"},
		{"a path", list + `{"metadata": {"name": ".."}}]}`, "item 1: metadata.name may not be '..'"},
		{"a slash in the namespace", list + `{"metadata": {"name": "x", "namespace": "../hunter2"}}]}`, "item 1: metadata.namespace may not contain '/'"},
		{"metadata of another type", list + `{"metadata": "hunter2"}]}`, "item 1: a Widget needs a name"},
	} {
		objects, rejected := widgets("m.yaml", []byte(row.manifest))
		require.Empty(t, objects, row.name)
		require.Len(t, rejected, 1, row.name)
		require.EqualError(t, rejected[0], "m.yaml, document 1, line 1, "+row.want, row.name)
	}
}

// FuzzObjects proves that no bytes make a decoder of objects panic, and that what it gives has a
// name, and no version.
func FuzzObjects(f *testing.F) {
	f.Add([]byte(`{"apiVersion": "example.com/v1", "kind": "WidgetList", "items": [null, {"metadata": {"name": "a"}, "spec": 1}]}`))
	f.Add([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, resourceVersion: '7'}\ndata: {a: b}\n---\nkind: List\n"))
	f.Add([]byte("apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n  binaryData: {a: AA==}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		one, rejected := widgets("m.yaml", data)
		for _, object := range one {
			checkObject(t, object)
		}
		two, more := configMaps("m.yaml", data)
		for _, object := range two {
			checkObject(t, object)
		}
		for _, err := range append(rejected, more...) {
			require.NotNil(t, errors.Unwrap(err))
			require.NotEmpty(t, err.Error())
		}
	})
}

func checkObject(t *testing.T, object metav1.Object) {
	require.NotEmpty(t, object.GetName())
	require.NotContains(t, object.GetName()+object.GetNamespace(), "/")
	require.Empty(t, object.GetResourceVersion())
}
