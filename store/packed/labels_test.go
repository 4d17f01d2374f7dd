package packed_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// TestLabelsAreReadOffTheWire: an index of a label decodes no object, and a selection decodes those
// that it yields.
func TestLabelsAreReadOffTheWire(t *testing.T) {
	t.Run("protobuf", func(t *testing.T) {
		testLabels(t, packed.New[corev1.Pod](store.ByNamespace[*corev1.Pod](), store.ByLabel[*corev1.Pod]("app")), inProtobuf)
	})
	t.Run("JSON", func(t *testing.T) {
		testLabels(t, packed.New[unstructured.Unstructured](store.ByLabel[*unstructured.Unstructured]("app")), inJSON)
	})
}

func testLabels[T store.Object](t *testing.T, at *packed.Store[T], encode func(testing.TB, *corev1.Pod) *store.Encoded) {
	var decoded atomic.Int64
	at.CountDecoded(&decoded)
	encoded := func(i, version int, app string) *store.Encoded {
		pod := somePod(i, version)
		pod.Labels["app"] = app
		return encode(t, pod)
	}
	var all []*store.Encoded
	for i := range 100 {
		all = append(all, encoded(i, 1, fmt.Sprint("app-", i%10)))
	}
	require.NoError(t, at.Encoded().Replace(store.Items(all...), store.At("1")))
	require.NoError(t, at.Encoded().Update(encoded(7, 2, "moved")))
	require.NoError(t, at.Encoded().Delete(encoded(17, 3, "app-7")))
	require.Zero(t, decoded.Load())

	count := func(selector string) int {
		parsed, err := labels.Parse(selector)
		require.NoError(t, err)
		return len(slices.Collect(at.Snapshot().Select("", parsed)))
	}
	require.Equal(t, 1, count("app=moved"))
	require.Equal(t, 8, count("app=app-7"))
	require.Equal(t, int64(9), decoded.Load())
	require.Equal(t, 7, count("pod-template-hash=0"))
	require.Equal(t, int64(9+7), decoded.Load(), "without an index, labels alone are read")
}

// inProtobuf is a pod as it comes.
func inProtobuf(t testing.TB, pod *corev1.Pod) *store.Encoded {
	data, err := pod.Marshal()
	require.NoError(t, err)
	return withIdentity(&store.Encoded{Data: data}, pod)
}

// inJSON is a pod as it comes to a tree.
func inJSON(t testing.TB, pod *corev1.Pod) *store.Encoded {
	pod.APIVersion, pod.Kind = "v1", "Pod"
	data, err := json.Marshal(pod)
	require.NoError(t, err)
	e := &store.Encoded{Data: data, JSON: true}
	e.APIVersion, e.Kind = "v1", "Pod"
	return withIdentity(e, pod)
}

func withIdentity(e *store.Encoded, pod *corev1.Pod) *store.Encoded {
	e.Namespace, e.Name, e.UID, e.ResourceVersion = pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion
	return e
}
