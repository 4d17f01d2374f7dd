package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestPodsAreBoundAndEvicted by an unmodified clientset, as schedulers and kubectl drain do it.
func TestPodsAreBoundAndEvicted(t *testing.T) {
	r := newRig(t)
	pods := r.client(t, runtime.ContentTypeProtobuf).CoreV1().Pods("ns")
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	to := func(node string) *corev1.Binding {
		return &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	}
	require.NoError(t, pods.Bind(t.Context(), to("n1"), metav1.CreateOptions{}))
	require.True(t, apierrors.IsConflict(pods.Bind(t.Context(), to("n2"), metav1.CreateOptions{})))
	bound, err := pods.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "n1", bound.Spec.NodeName)
	require.Equal(t, corev1.PodScheduled, bound.Status.Conditions[0].Type)

	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	require.NoError(t, pods.EvictV1(t.Context(), eviction))
	evicted, err := pods.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, evicted.DeletionTimestamp, "its kubelet has the grace period to end it")
	require.Equal(t, corev1.DisruptionTarget, evicted.Status.Conditions[1].Type)

	eviction.Name = "never"
	require.True(t, apierrors.IsNotFound(pods.EvictV1(t.Context(), eviction)))
}
