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
		require.ErrorContains(t, good.Ready(time.Minute), "not synced yet")
		go good.Run(ctx)
		go bad.Run(ctx)
		require.NoError(t, good.WaitSynced(ctx))
		synctest.Wait()

		require.NoError(t, good.Ready(time.Minute))
		require.True(t, apierrors.IsForbidden(bad.Ready(time.Minute)))
		code, text := probe(reflector.ReadyHandler(time.Minute, good))
		require.Equal(t, http.StatusOK, code, text)
		code, text = probe(reflector.ReadyHandler(time.Minute, good, bad))
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, "copy 2: not synced yet (forbidden: secrets is forbidden: no role)\n", text)

		time.Sleep(4 * time.Minute) // of the simulated clock
		require.EqualError(t, good.Ready(time.Minute),
			"nothing heard for 4m0s, allowed are 1m0s (silent: nothing came within the liveness period)")
		require.NoError(t, good.Ready(5*time.Minute))
		cancel()
		synctest.Wait()
	})
}

// cutOff is a server that lists a pod at version 9, and 3 minutes later sends an event; from then
// on it has lost its etcd, and sends a bookmark a minute at the version of that event.
type cutOff struct{ forever }

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

// TestAVersionThatStandsStill: bookmarks of one version are contact, and neither an event nor
// progress. Who knows how often the cluster is written to can have Ready look at that too.
func TestAVersionThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server := cutOff{forever{n: 1}}
		r := reflector.New[*corev1.Pod](server, store.NewIndexer[*corev1.Pod](), reflector.WithWatchTimeout(time.Hour))
		strict := reflector.New[*corev1.Pod](server, store.NewIndexer[*corev1.Pod](),
			reflector.WithWatchTimeout(time.Hour), reflector.WithProgressWithin(3*time.Minute))
		began := time.Now()
		at := func(m time.Duration) time.Time { return began.Add(m * time.Minute) }
		times := func() []time.Time { s := r.Status(); return []time.Time{s.LastContact, s.LastEvent, s.LastProgress} }
		go r.Run(ctx)
		go strict.Run(ctx)
		require.NoError(t, r.WaitSynced(ctx))
		require.Equal(t, []time.Time{began, began, began}, times(), "the list is all three")

		time.Sleep(2*time.Minute + time.Second) // of the simulated clock
		require.Equal(t, []time.Time{at(2), began, at(2)}, times(), "a bookmark of a newer version is progress, and no event")
		time.Sleep(time.Minute)
		require.Equal(t, []time.Time{at(3), at(3), at(3)}, times())
		time.Sleep(10 * time.Minute)
		require.Equal(t, []time.Time{at(13), at(3), at(3)}, times(), "bookmarks of one version are contact alone")
		require.NoError(t, r.Ready(2*time.Minute))
		require.EqualError(t, strict.Ready(2*time.Minute), "at version 12 for 10m1s, allowed are 3m0s")
		require.NoError(t, strict.Status().Err, "the requests are well")
		cancel()
		synctest.Wait()
	})
}
