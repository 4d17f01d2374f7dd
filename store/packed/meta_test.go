package packed_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// TestMetadataInAnyOrder: most readers do without the managed fields, which usually come last.
func TestMetadataInAnyOrder(t *testing.T) {
	all := metav1.ObjectMeta{Name: "a", Namespace: "team", UID: "uid", ResourceVersion: "1", Generation: 7,
		Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "x"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web"}}, Finalizers: []string{"f"}}
	plain := all
	all.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "helm", FieldsType: "FieldsV1"}, {Manager: "kubelet"}}
	bytesOf := func(m metav1.ObjectMeta) []byte { data, err := m.Marshal(); require.NoError(t, err); return data }
	for name, metadata := range map[string][]byte{
		"as the server writes it": bytesOf(all),
		"managed fields between":  slices.Concat(bytesOf(all), bytesOf(plain)),
		"managed fields twice":    slices.Concat(bytesOf(all), bytesOf(all)),
		"without managed fields":  bytesOf(plain),
	} {
		message := append([]byte{1<<3 | 2, byte(len(metadata) | 0x80), byte(len(metadata) >> 7)}, metadata...)
		var want corev1.Pod
		require.NoError(t, want.Unmarshal(message), name)
		s := packed.New[corev1.Pod]()
		e := &store.Encoded{Data: message}
		e.Namespace, e.Name, e.UID, e.ResourceVersion = want.Namespace, want.Name, want.UID, want.ResourceVersion
		require.NoError(t, s.Encoded().Add(e), name)
		kept, ok := s.Entries().Get("team/a")
		entry := kept.(store.Object)
		require.True(t, ok, name)
		require.Equal(t, want.Labels, entry.GetLabels(), name)
		require.Equal(t, want.Annotations, entry.GetAnnotations(), name)
		require.Equal(t, want.OwnerReferences, entry.GetOwnerReferences(), name)
		require.Equal(t, want.Finalizers, entry.GetFinalizers(), name)
		require.Equal(t, want.Generation, entry.GetGeneration(), name)
		require.Equal(t, want.ManagedFields, entry.GetManagedFields(), name)
		require.Equal(t, want.ObjectMeta, entry.DeepCopyObject().(*metav1.PartialObjectMetadata).ObjectMeta, name)
	}
}
