package listwatch_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tributary-go/tributary/listwatch"
)

// anyObject is the object type of a program that learns the Go type at run time.
type anyObject interface {
	metav1.Object
	runtime.Object
}

func requireLike[O any, T interface {
	*O
	anyObject
	comparable
}](t *testing.T, media string) {
	t.Run(media, func(t *testing.T) {
		body := answerBoth(media, encode(t, media, v1Version, podList(50)), frames(t, media, v1Version, podEvents(50)...))
		client := clientset(t, serve(t, body)).CoreV1().RESTClient()
		known := listwatch.FromClient[O, T](client, "pods")
		like := listwatch.FromClientLike[anyObject](client, "pods", T(new(O)))
		wanted, meta, errs := readList(known.List(t.Context(), metav1.ListOptions{}))
		require.Empty(t, errs)
		got, gotMeta, errs := readList(like.List(t.Context(), metav1.ListOptions{}))
		require.Empty(t, errs)
		require.Equal(t, meta, gotMeta)
		require.Len(t, got, 50)
		for i := range wanted {
			require.Equal(t, anyObject(wanted[i]), got[i])
		}
		wantedEvents, errs := readWatch(known.Watch(t.Context(), metav1.ListOptions{}))
		require.Empty(t, errs)
		events, errs := readWatch(like.Watch(t.Context(), metav1.ListOptions{}))
		require.Empty(t, errs)
		require.NotEmpty(t, events)
		for i := range wantedEvents {
			require.Equal(t, wantedEvents[i].Type, events[i].Type)
			if wantedEvents[i].Object == nil { // a bookmark
				require.Nil(t, events[i].Object)
				continue
			}
			require.Equal(t, anyObject(wantedEvents[i].Object), events[i].Object)
		}
		require.Equal(t, known.Sharing().Bytes, like.Sharing().Bytes)
	})
}

// TestLike: a Go type that is known at run time only is read as one that the compiler knows.
func TestLike(t *testing.T) {
	for _, media := range encodings {
		requireLike[corev1.Pod](t, media)
		requireLike[metav1.PartialObjectMetadata](t, media)
	}
	requireLike[unstructured.Unstructured](t, jsonType)
}

// TestLikeRemembersChanges: the changes of an object are decoded beside its last state, which a
// weak pointer of the dynamic type holds.
func TestLikeRemembersChanges(t *testing.T) {
	client := clientset(t, serve(t, answer(http.StatusOK, protobufType, frames(t, protobufType, v1Version, changesOf(20, 5)...)))).CoreV1().RESTClient()
	known := listwatch.FromClient[corev1.Pod](client, "pods")
	wanted, errs := readWatch(known.Watch(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	like := listwatch.FromClientLike[anyObject](client, "pods", &corev1.Pod{})
	got, errs := readWatch(like.Watch(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	require.Len(t, got, len(wanted))
	for i := range wanted {
		require.Equal(t, anyObject(wanted[i].Object), got[i].Object)
	}
	// Which parts the decoding goroutines find at once depends on their timing.
	require.Greater(t, like.Sharing().Same, known.Sharing().Same/2)
}

// TestLikeHoldsAndProjects: held objects are found again, also behind a projection from one
// interface to another.
func TestLikeHoldsAndProjects(t *testing.T) {
	for _, media := range encodings {
		client := clientset(t, serve(t, answer(http.StatusOK, media, encode(t, media, v1Version, podList(5))))).CoreV1().RESTClient()
		projected := 0
		like := listwatch.Project(listwatch.FromClientLike[anyObject](client, "pods", &corev1.Pod{}), func(obj anyObject) anyObject {
			projected++
			obj.SetLabels(map[string]string{"seen": "yes"})
			return obj
		})
		held := map[string]anyObject{}
		source := like.Holding(func(key string) (anyObject, bool) { obj, ok := held[key]; return obj, ok })
		first, _, errs := readList(source.List(t.Context(), metav1.ListOptions{}))
		require.Empty(t, errs)
		for _, obj := range first {
			require.Equal(t, "yes", obj.GetLabels()["seen"])
			held[obj.GetNamespace()+"/"+obj.GetName()] = obj
		}
		second, _, errs := readList(source.List(t.Context(), metav1.ListOptions{}))
		require.Empty(t, errs)
		require.Equal(t, 5, projected, "a held object is not projected again")
		for i := range first {
			require.Same(t, first[i], second[i])
		}
	}
}

func TestLikeWantsAKind(t *testing.T) {
	client := clientset(t, serve(t, answer(http.StatusOK, jsonType, encode(t, jsonType, v1Version, podList(1))))).CoreV1().RESTClient()
	example := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Capsule"}}
	_, _, errs := readList(listwatch.FromClientLike[anyObject](client, "pods", example).List(t.Context(), metav1.ListOptions{}))
	require.ErrorContains(t, errs[0], "CapsuleList")
	require.PanicsWithValue(t,
		"listwatch: FromClientLike: the example is a <nil>: give a pointer to a struct, such as &corev1.Pod{}",
		func() { listwatch.FromClientLike[anyObject](client, "pods", nil) })
}
