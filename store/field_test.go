package store_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tributary-go/tributary/store"
)

// TestByField: an index of a field has what an index with a function of the field has, in an
// indexer and in a closed one that opens its entries for it.
func TestByField(t *testing.T) {
	byField, byFunction := store.ByField[*corev1.Pod]("spec.nodeName"), store.NewIndex("node", func(pod *corev1.Pod) []string { return []string{pod.Spec.NodeName} })
	plain := store.NewIndexer(byField, byFunction)
	byWhole := store.ByField[*corev1.Pod]("spec.nodeName")
	closed := newShelf(false, byWhole)
	random := rand.New(rand.NewSource(5))
	for version := range 500 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint(random.Intn(20)), ResourceVersion: fmt.Sprint(version + 1)}}
		if node := random.Intn(4); node > 0 {
			pod.Spec.NodeName = fmt.Sprint("node-", node)
		}
		if random.Intn(5) == 0 {
			require.NoError(t, plain.Delete(pod))
			require.NoError(t, closed.Delete(pod))
		} else {
			require.NoError(t, plain.Add(pod))
			require.NoError(t, closed.Add(pod))
		}
		for _, node := range []string{"", "node-1", "node-2", "node-3"} {
			want := byFunction.Len(plain.Snapshot(), node)
			require.Equal(t, want, byField.Len(plain.Snapshot(), node))
			require.Equal(t, want, byWhole.Len(closed.Snapshot(), node))
		}
	}
}

// TestByFieldRefuses: a field that the type has not. A tree may have any.
func TestByFieldRefuses(t *testing.T) {
	require.PanicsWithValue(t, `store: ByField: *v1.Pod has no field "spec.node": there is no "node" in v1.PodSpec`,
		func() { store.ByField[*corev1.Pod]("spec.node") })
	require.Panics(t, func() { store.ByField[store.Object]("spec.nodeName") })
	trees := store.ByField[*unstructured.Unstructured]("spec.node")
	all := store.NewIndexer(trees)
	require.NoError(t, all.Add(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"node": "n"}}}))
	require.NoError(t, all.Add(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "b"}, "spec": map[string]any{"node": int64(7)}}}))
	require.Equal(t, 1, trees.Len(all.Snapshot(), "n"))
	require.Equal(t, 1, trees.Len(all.Snapshot(), ""), "a number is no text")
}
