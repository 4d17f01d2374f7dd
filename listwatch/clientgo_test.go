package listwatch_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

const (
	eventually = 10 * time.Second
	tick       = 5 * time.Millisecond
)

// collection is a server of three pods: a list of two, and a stream of these, a bookmark and the
// third. Without watchList, it refuses initial events like an older server.
func collection(t *testing.T, media string, watchList bool) http.HandlerFunc {
	t.Helper()
	bookmark := podEvents(0)
	added := func(i int) watch.Event { return watch.Event{Type: watch.Added, Object: pod(i)} }
	pods := podList(2)
	pods.Continue, pods.RemainingItemCount = "", nil
	list := encode(t, media, v1Version, pods)
	initial := frames(t, media, v1Version, added(0), added(1), bookmark[0], added(2))
	later := frames(t, media, v1Version, added(2))
	invalid := apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil).ErrStatus
	refusal := encode(t, media, v1Version, &invalid)
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		body := list
		switch {
		case query.Get("sendInitialEvents") == "true" && !watchList:
			answer(http.StatusUnprocessableEntity, media, refusal)(w, r)
			return
		case query.Get("sendInitialEvents") == "true":
			body = initial
		case query.Get("watch") == "true":
			body = later
		}
		w.Header().Set("Content-Type", media)
		_, _ = w.Write(body)
		if query.Get("watch") == "true" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}
}

// reflectInto runs client-go's reflector on lw until its store has three pods, and returns the
// store.
func reflectInto[T store.Object](t *testing.T, lw cache.ListerWatcher, expected T) cache.Store {
	t.Helper()
	into := cache.NewStore(cache.MetaNamespaceKeyFunc)
	r := cache.NewReflector(lw, expected, into, 0)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.RunWithContext(ctx) }()
	require.Eventually(t, func() bool { return len(into.ListKeys()) == 3 }, eventually, tick)
	require.NotEmpty(t, r.LastSyncResourceVersion())
	cancel()
	<-done
	return into
}

func TestClientGosReflectorReadsFromOurs(t *testing.T) {
	for _, media := range encodings {
		for name, watchList := range map[string]bool{"watch list": true, "list and watch": false} {
			t.Run(name+" "+media, func(t *testing.T) {
				client := restClient(t, serve(t, collection(t, media, watchList)), v1Version)
				lw := listwatch.ToClientGo(listwatch.FromClient[corev1.Pod](client, "pods"))
				into := reflectInto(t, lw, &corev1.Pod{})
				obj, exists, err := into.GetByKey("shop/" + pod(1).Name)
				require.NoError(t, err)
				require.True(t, exists)
				require.Equal(t, pod(1).Spec.NodeName, obj.(*corev1.Pod).Spec.NodeName)
			})
		}
	}
}

// client-go drops a bookmark of another kind, and with it the end of the initial events.
func TestClientGosReflectorGetsBookmarksOfUnstructured(t *testing.T) {
	client := restClient(t, serve(t, collection(t, jsonType, true)), v1Version)
	expected := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	reflectInto(t, listwatch.ToClientGo(listwatch.FromClient[unstructured.Unstructured](client, "pods")), expected)
}

func TestOursReadsFromClientGos(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			cs := clientset(t, serve(t, collection(t, media, true)))
			theirs := cache.NewListWatchFromClient(cs.CoreV1().RESTClient(), "pods", "shop", fields.Everything())
			lw := listwatch.FromClientGo[*corev1.Pod](theirs)
			require.False(t, lw.IsWatchListSemanticsUnSupported())
			pods, meta, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			require.Len(t, pods, 2)
			require.Equal(t, "4711", meta.ResourceVersion)
			for event, err := range lw.Watch(t.Context(), metav1.ListOptions{}) {
				require.NoError(t, err)
				require.Equal(t, pod(2).Name, event.Object.Name)
				break
			}
			// To client-go and back.
			reflectInto(t, listwatch.ToClientGo(lw), &corev1.Pod{})
		})
	}
}

func TestWatchListIsRefusedBothWays(t *testing.T) {
	cs := fake.NewClientset()
	plain := &cache.ListWatch{}
	refusing := cache.ToListWatcherWithWatchListSemantics(plain, cs)
	lw := listwatch.FromClientGo[*corev1.Pod](refusing)
	require.True(t, lw.IsWatchListSemanticsUnSupported())
	back := listwatch.ToClientGo(lw).(interface{ IsWatchListSemanticsUnSupported() bool })
	require.True(t, back.IsWatchListSemanticsUnSupported())
	require.False(t, listwatch.FromClientGo[*corev1.Pod](plain).IsWatchListSemanticsUnSupported())
	require.True(t, listwatch.FromClientGo[*corev1.Pod](plain, listwatch.WithoutWatchList()).IsWatchListSemanticsUnSupported())
}

func TestToClientGoPassesErrorsOn(t *testing.T) {
	gone := apierrors.NewResourceExpired("too old").ErrStatus
	client := restClient(t, serve(t, answer(http.StatusGone, jsonType, encode(t, jsonType, v1Version, &gone))), v1Version)
	lw := listwatch.ToClientGo(listwatch.FromClient[corev1.Pod](client, "pods"))
	//lint:ignore SA1019 the methods without a context are a part of what is adapted to
	_, err := lw.List(metav1.ListOptions{})
	require.True(t, apierrors.IsResourceExpired(err))

	//lint:ignore SA1019 as above
	w, err := lw.Watch(metav1.ListOptions{})
	require.NoError(t, err)
	event := <-w.ResultChan()
	require.Equal(t, watch.Error, event.Type)
	require.True(t, apierrors.IsResourceExpired(apierrors.FromObject(event.Object)))
	_, open := <-w.ResultChan()
	require.False(t, open)
	w.Stop()
}

func TestToClientGoReportsADamagedObject(t *testing.T) {
	server := &cutter{body: damage(t, encode(t, protobufType, v1Version, small()))}
	lw := listwatch.ToClientGo(listwatch.FromClient[corev1.Pod](server.client(t), "pods"))
	//lint:ignore SA1019 the methods without a context are a part of what is adapted to
	_, err := lw.List(metav1.ListOptions{})
	require.ErrorContains(t, err, "object shop/b cannot be used")

	server.body = frames(t, protobufType, v1Version, watch.Event{Type: "MOVED", Object: pod(0)}, watch.Event{Type: watch.Added, Object: pod(1)})
	//lint:ignore SA1019 as above
	w, err := lw.Watch(metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	event := <-w.ResultChan()
	require.Equal(t, watch.Error, event.Type)
	require.True(t, apierrors.IsInternalError(apierrors.FromObject(event.Object)))
	require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
}

func TestToClientGoListsAreLists(t *testing.T) {
	server := &cutter{body: encode(t, protobufType, v1Version, podList(2))}
	//lint:ignore SA1019 the methods without a context are a part of what is adapted to
	list, err := listwatch.ToClientGo(listwatch.FromClient[corev1.Pod](server.client(t), "pods")).List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, "4711", listMeta(t, list).ResourceVersion)
	copied := list.DeepCopyObject()
	require.Equal(t, list, copied)
	itemsOf[*corev1.Pod](t, copied)[0].Name = "changed"
	require.Equal(t, pod(0).Name, itemsOf[*corev1.Pod](t, list)[0].Name)
}

func TestStopEndsTheWatchOfToClientGo(t *testing.T) {
	config, _, gone := dripping(t, frames(t, jsonType, v1Version, podEvents(2)...), nil)
	//lint:ignore SA1019 the methods without a context are a part of what is adapted to
	w, err := listwatch.ToClientGo(listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods")).Watch(metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
	w.Stop() // with an undelivered event
	requireGone(t, gone)
	w.Stop()
}
