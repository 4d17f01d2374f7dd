package listwatch_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
)

func sameMemory(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b)
}

func TestEqualPartsShareMemory(t *testing.T) {
	// Of two goroutines that decode at once, one may keep nothing.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			cs := clientset(t, serve(t, answerBoth(media, encode(t, media, v1Version, podList(50)), frames(t, media, v1Version, podEvents(50)...))))
			// The pods of other tests have habits of their own.
			lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "alike")
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

// changesOf returns states of pods without equal parts, in turns. They have more than 1 KiB:
// smaller ones are not compared with their last state.
func changesOf(pods, states int) (all []watch.Event) {
	for state := range states {
		for i := range pods {
			all = append(all, watch.Event{Type: watch.Modified, Object: &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod-", i), UID: types.UID(fmt.Sprint("uid-", i)), ResourceVersion: fmt.Sprint(state, i),
					Annotations: map[string]string{"own": strings.Repeat(fmt.Sprint(i, " "), 500)}},
				Spec:   corev1.PodSpec{NodeName: fmt.Sprint("a node that no other pod is on: ", i)},
				Status: corev1.PodStatus{ObservedGeneration: int64(state)},
			}})
		}
	}
	return all
}

// TestAChangedObjectSharesMemoryWithItsLastState: with so many pods without equal parts, the memo
// soon stops looking parts up.
func TestAChangedObjectSharesMemoryWithItsLastState(t *testing.T) {
	const pods, states = 200, 5
	cs := clientset(t, serve(t, answer(200, protobufType, frames(t, protobufType, v1Version, changesOf(pods, states)...))))
	held := map[string]*corev1.Pod{}
	lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods").Holding(func(key string) (*corev1.Pod, bool) {
		pod, found := held[key]
		return pod, found
	})
	var events []listwatch.Event[*corev1.Pod]
	for event, err := range lw.Watch(t.Context(), metav1.ListOptions{}) {
		require.NoError(t, err)
		events = append(events, event)
		held[event.Object.Name] = event.Object
	}
	shared := 0
	for i, event := range events[pods:] {
		require.EqualValues(t, i/pods+1, event.Object.Status.ObservedGeneration)
		require.Equal(t, fmt.Sprint("a node that no other pod is on: ", i%pods), event.Object.Spec.NodeName)
		if sameMemory(events[i].Object.Spec.NodeName, event.Object.Spec.NodeName) {
			shared++
		}
	}
	require.Greater(t, shared, pods*(states-1)/2)
}

// TestStatesThatAreNotKeptAreFreed: nothing here keeps an object that the reader has dropped or
// projected.
func TestStatesThatAreNotKeptAreFreed(t *testing.T) {
	cs := clientset(t, serve(t, answer(200, protobufType, frames(t, protobufType, v1Version, changesOf(2, 20)...))))
	lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods")
	var seen []weak.Pointer[corev1.Pod]
	for event, err := range lw.Watch(t.Context(), metav1.ListOptions{}) {
		require.NoError(t, err)
		seen = append(seen, weak.Make(event.Object))
	}
	runtime.GC()
	for _, p := range seen {
		require.Nil(t, p.Value())
	}
	require.Len(t, seen, 40)
	runtime.KeepAlive(lw)
}

func TestWithoutSharingEveryObjectHasItsOwnMemory(t *testing.T) {
	for _, media := range encodings {
		cs := clientset(t, serve(t, answer(200, media, encode(t, media, v1Version, podList(2)))))
		lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods", listwatch.WithoutSharing())
		listed, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
		require.Empty(t, errs)
		require.False(t, sameMemory(listed[0].GenerateName, listed[1].GenerateName))
		require.NotSame(t, &listed[0].Spec.Containers[0], &listed[1].Spec.Containers[0])
		stats := lw.Sharing()
		require.Greater(t, stats.Bytes, uint64(1000), "what came is counted")
		require.Equal(t, listwatch.SharingStats{Bytes: stats.Bytes}, stats)
	}
}
