package apiserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"
)

// everyFormat runs a test over both wire formats.
func everyFormat(t *testing.T, test func(t *testing.T, contentType string)) {
	t.Helper()
	t.Run("json", func(t *testing.T) { test(t, wireJSON) })
	t.Run("protobuf", func(t *testing.T) { test(t, wireProtobuf) })
}

func TestTypedClient(t *testing.T) {
	everyFormat(t, func(t *testing.T, contentType string) {
		r, ctx := newRig(t), t.Context()
		pods := r.client(t, contentType).CoreV1().Pods("ns")
		created, err := pods.Create(ctx, pod("a", onNode("n1"), labelled("app", "web")), metav1.CreateOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, created.UID)
		require.EqualValues(t, 1, created.Generation)
		require.WithinDuration(t, time.Now(), created.CreationTimestamp.Time, time.Minute)

		list, err := pods.List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, created.ResourceVersion, list.ResourceVersion)
		require.Equal(t, []corev1.Pod{*created}, list.Items)

		watcher, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		require.NoError(t, err)
		defer watcher.Stop()
		created.Spec.Containers[0].Image = "other"
		updated, err := pods.Update(ctx, created, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.EqualValues(t, 2, updated.Generation)
		event := next(t, watcher)
		require.Equal(t, watch.Modified, event.Type)
		require.Equal(t, updated, event.Object)

		_, err = pods.Update(ctx, created, metav1.UpdateOptions{})
		require.True(t, apierrors.IsConflict(err), "%v", err)
		_, err = pods.Get(ctx, "never", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	})
}

// next is the next event of a watch, or a failure.
func next(t testing.TB, w watch.Interface) watch.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	select {
	case e, ok := <-w.ResultChan():
		require.True(t, ok, "the watch has ended")
		return e
	case <-ctx.Done():
		require.FailNow(t, "no event")
		return watch.Event{}
	}
}

func TestDynamicClient(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	client, err := dynamic.NewForConfig(r.config(t, ""))
	require.NoError(t, err)
	pods := client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace("ns")
	watcher, err := pods.Watch(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	require.NoError(t, err)
	defer watcher.Stop()
	document := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"app": "web"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "image"}}},
	}}
	created, err := pods.Create(ctx, document, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, watch.Event{Type: watch.Added, Object: created}, next(t, watcher))
	created.SetLabels(nil)
	updated, err := pods.Update(ctx, created, metav1.UpdateOptions{})
	require.NoError(t, err)
	left := next(t, watcher)
	require.Equal(t, watch.Deleted, left.Type)
	require.Equal(t, updated.GetResourceVersion(), left.Object.(*unstructured.Unstructured).GetResourceVersion())
	list, err := pods.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, []unstructured.Unstructured{*updated}, list.Items)
}

func TestMetadataClient(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	client, err := metadata.NewForConfig(r.config(t, ""))
	require.NoError(t, err)
	pods := client.Resource(corev1.SchemeGroupVersion.WithResource("pods"))
	a := r.create(t, pod("a", labelled("app", "web")))
	list, err := pods.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, a.ResourceVersion, list.ResourceVersion)
	require.Len(t, list.Items, 1)
	require.Equal(t, a.Labels, list.Items[0].Labels)
	one, err := pods.Namespace("ns").Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, a.UID, one.UID)

	watcher, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	defer watcher.Stop()
	b := r.create(t, pod("b"))
	e := next(t, watcher)
	require.Equal(t, watch.Added, e.Type)
	require.Equal(t, b.UID, e.Object.(*metav1.PartialObjectMetadata).UID)
}

func TestPagerOfClientGo(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	r.create(t, pod("a"), pod("b"), pod("c"), pod("d"), pod("e"))
	pods := r.client(t, wireProtobuf).CoreV1().Pods("")
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) })
	pages.PageSize = 2
	var names []string
	require.NoError(t, pages.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		names = append(names, obj.(*corev1.Pod).Name)
		return nil
	}))
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, names)
}
