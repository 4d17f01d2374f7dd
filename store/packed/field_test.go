package packed_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// TestFieldsAreReadOffTheWire: an index of a field decodes no object, whenever it is added, and has
// the content of an index with a function.
func TestFieldsAreReadOffTheWire(t *testing.T) {
	t.Run("protobuf", func(t *testing.T) {
		testField[*corev1.Pod](t, packed.New[corev1.Pod], inProtobuf)
	})
	t.Run("JSON", func(t *testing.T) {
		testField[*unstructured.Unstructured](t, packed.New[unstructured.Unstructured], inJSON)
	})
}

func testField[T store.Object](t *testing.T, newStore func(...store.AnyIndex[T]) *packed.Store[T], encode func(testing.TB, *corev1.Pod) *store.Encoded) {
	early, late := store.ByField[T]("spec.nodeName"), store.ByField[T]("spec.nodeName")
	at := newStore(early, store.ByLabel[T]("app"))
	var decoded atomic.Int64
	at.CountDecoded(&decoded)
	encoded := func(i, version int, node string) *store.Encoded {
		pod := somePod(i, version)
		pod.Spec.NodeName = node
		return encode(t, pod)
	}
	var all []*store.Encoded
	for i := range 100 {
		all = append(all, encoded(i, 1, fmt.Sprint("node-", i%10)))
	}
	require.NoError(t, at.Encoded().Replace(store.Items(all...), store.At("1")))
	require.NoError(t, at.Encoded().Update(encoded(7, 2, "moved")))
	require.NoError(t, at.Encoded().Update(encoded(8, 2, "")))
	require.NoError(t, at.Encoded().Delete(encoded(17, 3, "node-7")))
	at.AddIndexes(late)
	for _, x := range []*store.Index[T, string]{early, late} {
		s := at.Snapshot()
		require.Equal(t, 1, x.Len(s, "moved"))
		require.Equal(t, 1, x.Len(s, ""), "without a node")
		require.Equal(t, 8, x.Len(s, "node-7"))
		require.Equal(t, 9, x.Len(s, "node-8"))
	}
	require.Zero(t, decoded.Load())
	require.Len(t, slices.Collect(late.Objects(at.Snapshot(), "node-7")), 8)
	require.Equal(t, int64(8), decoded.Load())
}
