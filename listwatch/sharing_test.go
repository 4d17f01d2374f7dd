package listwatch_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
)

// sameMemory reports whether two strings are one.
func sameMemory(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b)
}

func TestEqualPartsShareMemory(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			cs := clientset(t, serve(t, answerBoth(media, encode(t, media, v1Version, podList(50)), frames(t, media, v1Version, podEvents(50)...))))
			lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods")
			listed, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			events, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			for _, p := range []*corev1.Pod{listed[49], events[49].Object} {
				require.True(t, sameMemory(listed[0].GenerateName, p.GenerateName))
				require.Same(t, &listed[0].Spec.Containers[0], &p.Spec.Containers[0])
				require.Same(t, listed[0].ManagedFields[0].FieldsV1, p.ManagedFields[0].FieldsV1)
			}
			require.NotSame(t, listed[0], events[0].Object)

			stats := lw.Sharing()
			require.Greater(t, stats.Same+stats.Hits, (stats.Same+stats.Lookups)/2)
			require.Greater(t, stats.Shared, stats.Bytes/2)
			require.Positive(t, stats.Entries)
			require.Positive(t, stats.Held)
		})
	}
}

func TestWithoutSharingEveryObjectHasItsOwnMemory(t *testing.T) {
	for _, media := range encodings {
		cs := clientset(t, serve(t, answer(200, media, encode(t, media, v1Version, podList(2)))))
		lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods", listwatch.WithoutSharing())
		listed, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
		require.Empty(t, errs)
		require.False(t, sameMemory(listed[0].GenerateName, listed[1].GenerateName))
		require.NotSame(t, &listed[0].Spec.Containers[0], &listed[1].Spec.Containers[0])
		require.Zero(t, lw.Sharing())
	}
}
