package listwatch_test

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// In this file client-go's clients are the judges: FromClient must read a body as they do.

// readList returns a list's objects, and the errors between or after them.
func readList[T store.Object](list listwatch.List[T]) (objects []T, meta metav1.ListMeta, errs []error) {
	for obj, err := range list.Items {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		objects = append(objects, obj)
	}
	return objects, list.Meta(), errs
}

// readWatch returns a watch's events, and the errors between or after them.
func readWatch[T store.Object](seq iter.Seq2[listwatch.Event[T], error]) (events []listwatch.Event[T], errs []error) {
	for event, err := range seq {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		events = append(events, event)
	}
	return events, errs
}

func requireSameEvents[T store.Object](t *testing.T, w watch.Interface, got []listwatch.Event[T]) {
	t.Helper()
	defer w.Stop()
	i := 0
	for want := range w.ResultChan() {
		require.Less(t, i, len(got), "client-go has more events")
		obj := want.Object.(T)
		require.Equal(t, want.Type, got[i].Type)
		require.Equal(t, obj.GetResourceVersion(), got[i].ResourceVersion)
		if want.Type == watch.Bookmark {
			require.Zero(t, got[i].Object)
			require.Equal(t, obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true", got[i].InitialEventsEnd)
		} else {
			require.Equal(t, obj, got[i].Object)
			require.False(t, got[i].InitialEventsEnd)
		}
		i++
	}
	require.Len(t, got, i)
}

func TestTypedObjectsAreThoseOfTheClientset(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			t.Run("pods", func(t *testing.T) {
				cs := clientset(t, serve(t, answerBoth(media, encode(t, media, v1Version, podList(20)), frames(t, media, v1Version, podEvents(20)...))))
				agreeTyped[corev1.Pod](t, cs, "pods", cs.CoreV1().Pods("").List, cs.CoreV1().Pods("").Watch)
			})
			t.Run("nodes", func(t *testing.T) {
				list := &corev1.NodeList{Items: []corev1.Node{*node(0), *node(1)}}
				body := frames(t, media, v1Version, watch.Event{Type: watch.Added, Object: node(0)}, watch.Event{Type: watch.Deleted, Object: node(1)})
				cs := clientset(t, serve(t, answerBoth(media, encode(t, media, v1Version, list), body)))
				agreeTyped[corev1.Node](t, cs, "nodes", cs.CoreV1().Nodes().List, cs.CoreV1().Nodes().Watch)
			})
			t.Run("configmaps", func(t *testing.T) {
				list := &corev1.ConfigMapList{Items: []corev1.ConfigMap{*configMap(0), *configMap(1)}}
				body := frames(t, media, v1Version, watch.Event{Type: watch.Modified, Object: configMap(0)})
				cs := clientset(t, serve(t, answerBoth(media, encode(t, media, v1Version, list), body)))
				agreeTyped[corev1.ConfigMap](t, cs, "configmaps", cs.CoreV1().ConfigMaps("").List, cs.CoreV1().ConfigMaps("").Watch)
			})
			t.Run("empty", func(t *testing.T) {
				cs := clientset(t, serve(t, answerBoth(media, encode(t, media, v1Version, podList(0)), nil)))
				agreeTyped[corev1.Pod](t, cs, "pods", cs.CoreV1().Pods("").List, cs.CoreV1().Pods("").Watch)
			})
		})
	}
}

// noMutations fails the test if anything writes into a read object, the decoder included.
func noMutations(t *testing.T) listwatch.Option {
	return listwatch.WithMutationDetector(func(m listwatch.Mutation) { t.Errorf("written into: %+v", m) })
}

func agreeTyped[O any, L runtime.Object, T interface {
	*O
	store.Object
}](t *testing.T, cs *kubernetes.Clientset, resource string,
	list func(context.Context, metav1.ListOptions) (L, error),
	watchFrom func(context.Context, metav1.ListOptions) (watch.Interface, error),
) {
	t.Helper()
	lw := listwatch.FromClient[O, T](cs.CoreV1().RESTClient(), resource, noMutations(t))
	theirs, err := list(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	got, meta, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	require.Equal(t, listMeta(t, theirs), meta)
	require.Equal(t, itemsOf[T](t, theirs), got)

	w, err := watchFrom(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	events, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	requireSameEvents(t, w, events)
}

func TestUnstructuredObjectsAreThoseOfTheDynamicClient(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	widget := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"name": name, "namespace": "shop", "resourceVersion": "12"},
			"spec":     map[string]any{"size": int64(3), "ratio": 0.5, "tags": []any{"a", nil, true}, "odd": "{[\"\\"},
		}}
	}
	list := &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": "example.com/v1", "kind": "WidgetList", "metadata": map[string]any{"resourceVersion": "99"}},
		Items:  []unstructured.Unstructured{*widget("a"), *widget("b")},
	}
	body, err := runtime.Encode(unstructured.UnstructuredJSONScheme, list)
	require.NoError(t, err)
	bookmark := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"resourceVersion": "13"}}}
	stream := unstructuredFrames(t, watch.Event{Type: watch.Added, Object: widget("a")},
		watch.Event{Type: watch.Deleted, Object: widget("b")}, watch.Event{Type: watch.Bookmark, Object: bookmark})

	agreeUnstructured(t, jsonType, gv, "widgets", body, stream)
}

func TestUnstructuredItemsOfABuiltinListGetItsKind(t *testing.T) {
	body := encode(t, jsonType, v1Version, podList(3))
	require.NotContains(t, string(body), `"kind":"Pod"`, "the server leaves the kind of items out")
	agreeUnstructured(t, jsonType, v1Version, "pods", body, frames(t, jsonType, v1Version, podEvents(3)...))
}

func agreeUnstructured(t *testing.T, media string, gv schema.GroupVersion, resource string, list, stream []byte) {
	t.Helper()
	config := serve(t, answerBoth(media, list, stream))
	peer, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	lw := listwatch.FromClient[unstructured.Unstructured](restClient(t, config, gv), resource, noMutations(t))

	want, err := peer.Resource(gv.WithResource(resource)).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	got, meta, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	require.Equal(t, listMeta(t, want), meta)
	require.Equal(t, itemsOf[*unstructured.Unstructured](t, want), got)

	w, err := peer.Resource(gv.WithResource(resource)).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	events, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	requireSameEvents(t, w, events)
}

func TestMetadataIsThatOfTheMetadataClient(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
			var events []watch.Event
			for i := range 3 {
				item := metav1.PartialObjectMetadata{ObjectMeta: pod(i).ObjectMeta}
				list.Items = append(list.Items, item)
				events = append(events, watch.Event{Type: watch.Modified, Object: &item})
			}
			config := serve(t, answerBoth(media, encode(t, media, metaVersion, list), frames(t, media, metaVersion, events...)))
			peer, err := metadata.NewForConfig(config)
			require.NoError(t, err)
			pods := peer.Resource(v1Version.WithResource("pods"))
			lw := listwatch.FromClient[metav1.PartialObjectMetadata](restClient(t, config, v1Version), "pods")

			want, err := pods.List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			got, meta, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			require.Equal(t, want.ListMeta, meta)
			require.Len(t, got, len(want.Items))
			for i := range got {
				require.Equal(t, want.Items[i].ObjectMeta, got[i].ObjectMeta)
				require.Equal(t, metaVersion.WithKind("PartialObjectMetadata"), got[i].GroupVersionKind())
			}

			w, err := pods.Watch(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			seen, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			for _, event := range seen { // client-go removes the kind
				require.Equal(t, metaVersion.WithKind("PartialObjectMetadata"), event.Object.GroupVersionKind())
				event.Object.TypeMeta = metav1.TypeMeta{}
			}
			requireSameEvents(t, w, seen)
		})
	}
}

// A server that does not know the metadata form answers with whole objects.
func TestMetadataOfWholeObjectsKeepsTheirKind(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			config := serve(t, answerBoth(media, encode(t, media, v1Version, podList(2)), frames(t, media, v1Version, podEvents(2)...)))
			lw := listwatch.FromClient[metav1.PartialObjectMetadata](restClient(t, config, v1Version), "pods")
			got, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			require.Len(t, got, 2)
			events, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			require.Len(t, events, 3)
			for i, obj := range append(got, events[0].Object, events[1].Object) {
				require.Equal(t, pod(i%2).Name, obj.Name)
				require.Equal(t, v1Version.WithKind("Pod"), obj.GroupVersionKind())
			}
			require.True(t, events[2].InitialEventsEnd)
		})
	}
}
