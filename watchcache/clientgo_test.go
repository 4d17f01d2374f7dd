package watchcache_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
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
		event := <-watcher.ResultChan()
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
