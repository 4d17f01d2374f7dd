package listwatch_test

import (
	"strings"
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

// onNode is a pod as a type of the reader's own has it.
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
			newer := pod(1)
			newer.ResourceVersion = "9000"
			items := []corev1.Pod{*pod(0), *newer, *pod(2), *pod(3)}
			cs := clientset(t, serve(t, answer(200, media, encode(t, media, v1Version, &corev1.PodList{Items: items}))))
			calls := 0
			copied := store.NewIndexer[*onNode]()
			for i := range 3 {
				require.NoError(t, copied.Add(toNode(new(int))(pod(i))))
			}
			lw := listwatch.Project(listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods"), toNode(&calls)).Holding(copied.Snapshot().Get)
			listed, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			require.Equal(t, 2, calls)
			for i := range items {
				held, _ := copied.Snapshot().Get(store.KeyOf(&items[i]))
				require.Equal(t, i == 0 || i == 2, held == listed[i], "object %d", i)
				require.Equal(t, items[i].ResourceVersion, listed[i].ResourceVersion)
				require.Equal(t, items[i].Name, listed[i].Name)
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

func TestManagedFieldsAreDropped(t *testing.T) {
	odd := strings.NewReplacer(`"metadata":{`, `"metadata":{"name":"x",`) // a name twice: decoded plainly
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
