package listwatch_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// onNode is the reader's own type for a pod.
type onNode struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	node string
}

func (o *onNode) DeepCopyObject() runtime.Object {
	c := *o
	o.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

func toNode(calls *int) func(*corev1.Pod) *onNode {
	return func(p *corev1.Pod) *onNode {
		*calls++
		return &onNode{node: p.Spec.NodeName,
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion}}
	}
}

func TestAProjectionRunsOncePerObject(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			cs := clientset(t, serve(t, answerBoth(media, encode(t, media, v1Version, podList(3)), frames(t, media, v1Version, podEvents(3)...))))
			calls := 0
			lw := listwatch.Project(listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods", listwatch.WithoutWatchList()), toNode(&calls))
			require.True(t, lw.IsWatchListSemanticsUnSupported())
			listed, meta, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			require.Equal(t, "4711", meta.ResourceVersion)
			require.Equal(t, "next", meta.Continue)
			require.Equal(t, 3, calls)
			require.Equal(t, "node-1", listed[2].node)
			require.Equal(t, pod(2).Name, listed[2].Name)

			events, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			require.Equal(t, 6, calls, "none for the bookmark")
			require.Equal(t, watch.Deleted, events[2].Type)
			require.Equal(t, pod(2).ResourceVersion, events[2].ResourceVersion)
			require.Equal(t, "node-1", events[2].Object.node)
			require.True(t, events[3].InitialEventsEnd)
			require.Nil(t, events[3].Object)
			require.Positive(t, lw.Sharing().Bytes)
		})
	}
}

func TestWhatIsHeldIsNotProjectedAgain(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			newer, moved, elsewhere := pod(1), pod(2), pod(3)
			newer.ResourceVersion = "9000"
			moved.Spec.NodeName = "node-2" // under the same version
			elsewhere.Status.Phase = corev1.PodFailed
			var body atomic.Value
			serveItems := func(items ...corev1.Pod) {
				body.Store(encode(t, media, v1Version, &corev1.PodList{Items: items}))
			}
			cs := clientset(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				answer(200, media, body.Load().([]byte))(w, r)
			}))
			calls := 0
			copied := store.NewIndexer[*onNode]()
			current := func(key string) (*onNode, bool) { return copied.Snapshot().Get(key) }
			lw := listwatch.Project(listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods"), toNode(&calls)).Holding(current)
			serveItems(*pod(0), *pod(1), *pod(2), *pod(3))
			first, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			require.Equal(t, 4, calls)
			require.NoError(t, copied.Replace(store.Items(first...), store.At("1")))

			serveItems(*pod(0), *newer, *moved, *elsewhere)
			second, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			require.Equal(t, 4+3, calls, "the first is neither decoded nor projected")
			for i, kept := range []bool{true, false, false, true} {
				require.Equal(t, kept, first[i] == second[i], "object %d: what the projection leaves out is no change", i)
			}
			require.Equal(t, "9000", second[1].ResourceVersion)
			require.Equal(t, "node-2", second[2].node)

			// The reader now holds these objects, so they are not projected again.
			require.NoError(t, copied.Replace(store.Items(second...), store.At("2")))
			third, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			require.Equal(t, 4+3, calls)
			for i := range third {
				require.Same(t, second[i], third[i])
			}
		})
	}
}

func TestAProjectionThatLosesWhoAnObjectIsCostsThatObject(t *testing.T) {
	cs := clientset(t, serve(t, answerBoth(jsonType, encode(t, jsonType, v1Version, podList(5)), frames(t, jsonType, v1Version, podEvents(5)...))))
	lw := listwatch.Project(listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods"), func(p *corev1.Pod) *onNode {
		o := toNode(new(int))(p)
		switch p.Name[len(p.Name)-1] {
		case '0':
			return nil
		case '1':
			o.UID = ""
		case '2':
			o.ResourceVersion = ""
		case '3':
			o.Name = "other"
		}
		return o
	})
	listed, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
	require.Len(t, errs, 4)
	require.Equal(t, pod(4).Name, listed[len(listed)-1].Name)
	_, watchErrs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
	require.Len(t, watchErrs, 4)
	for i, err := range append(errs, watchErrs...) {
		var unusable *listwatch.DecodeError
		require.ErrorAs(t, err, &unusable)
		require.Equal(t, store.KeyOf(pod(i%4)), unusable.Object)
	}
	require.ErrorContains(t, watchErrs[0], "ADDED event")
}

// An error of the source comes with no object, also if an object came before it.
func TestAnErrorIsProjectedWithoutAnObject(t *testing.T) {
	cs := clientset(t, serve(t, answer(http.StatusOK, jsonType, encode(t, jsonType, v1Version, podList(3)))))
	source := listwatch.Intercept(listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods"),
		func(_ metav1.ListOptions, list listwatch.List[*corev1.Pod]) listwatch.List[*corev1.Pod] {
			items := list.Items
			list.Items = func(yield func(*corev1.Pod, error) bool) {
				for obj, err := range items {
					if !yield(obj, err) || !yield(nil, io.ErrUnexpectedEOF) {
						return
					}
				}
			}
			return list
		}, nil)
	same := func(p *corev1.Pod) *corev1.Pod { return p }
	objects, errs := 0, 0
	for obj, err := range listwatch.Project(source, same).List(t.Context(), metav1.ListOptions{}).Items {
		require.Equal(t, err == nil, obj != nil, "%v with %v", err, obj)
		if err == nil {
			objects++
		} else {
			errs++
		}
	}
	require.Equal(t, [2]int{3, 3}, [2]int{objects, errs})
}

func TestManagedFieldsAreDropped(t *testing.T) {
	// A duplicate name: decoded without the shortcut.
	odd := strings.NewReplacer(`"metadata":{`, `"metadata":{"name":"x",`)
	for _, media := range encodings {
		for _, options := range [][]listwatch.Option{nil, {listwatch.WithoutSharing()}} {
			body := encode(t, media, v1Version, podList(20))
			if media == jsonType {
				body = []byte(odd.Replace(string(body)))
			}
			cs := clientset(t, serve(t, answerBoth(media, body, frames(t, media, v1Version, podEvents(20)...))))
			lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods", append(options, listwatch.DropManagedFields())...)
			listed, _, _ := readList(lw.List(t.Context(), metav1.ListOptions{}))
			events, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			for i := range 20 {
				want := pod(i)
				want.ManagedFields = nil
				for _, got := range []*corev1.Pod{listed[i], events[i].Object} {
					want.CreationTimestamp, want.Status, got.CreationTimestamp, got.Status = metav1.Time{}, corev1.PodStatus{}, metav1.Time{}, corev1.PodStatus{}
					require.Equal(t, want, got)
				}
			}
		}
	}
}

func TestManagedFieldsOfATreeAreDropped(t *testing.T) {
	for _, metadata := range []string{`"name":"a","managedFields":[{"manager":"m"}]`, `"name":"x","name":"a","managedFields":[{"manager":"m"}]`} {
		for _, options := range [][]listwatch.Option{nil, {listwatch.WithoutSharing()}} {
			item := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{` + metadata + `},"spec":{"managedFields":[1]}}`
			body := `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{},"items":[` + item + `,` + item + `]}`
			client := restClient(t, serve(t, answer(200, jsonType, []byte(body))), schema.GroupVersion{Group: "example.com", Version: "v1"})
			lw := listwatch.FromClient[unstructured.Unstructured](client, "widgets", append(options, listwatch.DropManagedFields())...)
			listed, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			require.Len(t, listed, 2)
			for _, got := range listed {
				require.Equal(t, map[string]any{"name": "a"}, got.Object["metadata"])
				require.Equal(t, map[string]any{"managedFields": []any{int64(1)}}, got.Object["spec"])
			}
		}
	}
}
