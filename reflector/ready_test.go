package reflector_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

func probe(h http.Handler) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return w.Code, w.Body.String()
}

// TestReady: one copy syncs and then hears nothing, since its source never sends a bookmark;
// another never syncs, and does not block the first.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no role"))
		good := reflector.New[*corev1.Pod](forever{n: 1}, store.NewIndexer[*corev1.Pod]())
		bad := reflector.New[*corev1.Pod](forever{err: forbidden}, store.NewIndexer[*corev1.Pod]())
		require.EqualError(t, good.Ready(time.Minute), "Run has not been called")
		go good.Run(ctx)
		go bad.Run(ctx)
		require.NoError(t, good.WaitSynced(ctx))
		synctest.Wait()

		code, text := probe(reflector.ReadyHandler(time.Minute))
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Contains(t, text, "nothing is ready")
		require.NoError(t, good.Ready(time.Minute))
		require.True(t, apierrors.IsForbidden(bad.Ready(time.Minute)))
		code, text = probe(reflector.ReadyHandler(time.Minute, good))
		require.Equal(t, http.StatusOK, code, text)
		code, text = probe(reflector.ReadyHandler(time.Minute, good, bad))
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, "copy 2: not synced yet (forbidden: secrets is forbidden: no role)\n", text)

		time.Sleep(time.Hour) // of the simulated clock: probes prove that there is nothing to hear
		require.NoError(t, good.Ready(2*time.Minute), "%v", good.Status())
		require.NoError(t, good.Status().Err)
		cancel()
		synctest.Wait()
	})
}

// cutOff is a server that lists a pod at version 9, and 3 minutes later sends an event; from then
// on it has lost its etcd: it answers no consistent list, and sends a bookmark a minute at the
// version of that event.
type cutOff struct {
	forever
	began time.Time
}

func (c cutOff) List(ctx context.Context, o metav1.ListOptions) listwatch.List[*corev1.Pod] {
	if minutes := int(time.Since(c.began) / time.Minute); minutes < 3 {
		list := c.forever.List(ctx, o)
		list.Meta = func() metav1.ListMeta { return metav1.ListMeta{ResourceVersion: strconv.Itoa(9 + minutes)} }
		return list
	}
	return listwatch.List[*corev1.Pod]{
		Items: func(yield func(*corev1.Pod, error) bool) {
			yield(nil, apierrors.NewGenericServerResponse(504, "list", schema.GroupResource{Resource: "pods"}, "", "no etcd", 0, true))
		},
		Meta: func() metav1.ListMeta { return metav1.ListMeta{} },
	}
}

func (cutOff) Watch(ctx context.Context, _ metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
		for minute := 1; ; minute++ {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				return
			}
			event := listwatch.Event[*corev1.Pod]{Type: watch.Bookmark, ResourceVersion: strconv.Itoa(min(9+minute, 12))}
			if minute == 3 {
				event.Type, event.Object = watch.Modified, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "0", ResourceVersion: "12"}}
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}

// TestBookmarksProveNothing: a server that has lost its etcd sends bookmarks of one version. They
// are contact, and neither an event, nor progress, nor a proof.
func TestBookmarksProveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		r := reflector.New[*corev1.Pod](cutOff{forever{n: 1}, began}, store.NewIndexer[*corev1.Pod](), reflector.WithWatchTimeout(time.Hour))
		at := func(m time.Duration) time.Time { return began.Add(m * time.Minute) }
		times := func() []time.Time { s := r.Status(); return []time.Time{s.LastContact, s.LastEvent, s.LastProgress} }
		go r.Run(ctx)
		require.NoError(t, r.WaitSynced(ctx))
		require.Equal(t, []time.Time{began, began, began}, times(), "the list is all three")

		time.Sleep(2*time.Minute + time.Second) // of the simulated clock
		require.Equal(t, []time.Time{at(2), began, at(2)}, times(), "a bookmark of a newer version is progress, and no event")
		time.Sleep(time.Minute)
		require.Equal(t, []time.Time{at(3), at(3), at(3)}, times())
		require.NoError(t, r.Ready(2*time.Minute))
		time.Sleep(10 * time.Minute)
		require.Equal(t, []time.Time{at(13), at(3), at(3)}, times(), "bookmarks of one version are contact alone")
		err := r.Ready(3 * time.Minute)
		require.ErrorContains(t, err, " ago; allowed are 3m0s (the last probe: ")
		require.True(t, apierrors.IsInternalError(err) || apierrors.ReasonForError(err) == metav1.StatusReasonTimeout, "%v", err)
		require.Equal(t, reflector.Stale, r.Status().Verdict(3*time.Minute).Class)
		require.NoError(t, r.Status().Err, "the watch is well")
		cancel()
		synctest.Wait()
		require.ErrorContains(t, r.Ready(time.Hour), "Run has ended (the last probe: ")
	})
}
