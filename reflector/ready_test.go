package reflector_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

func probe(h http.Handler) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return w.Code, w.Body.String()
}

// TestReady: one copy syncs and then hears nothing, since its source never sends a bookmark; another never syncs, and does
// not block the first.
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

		time.Sleep(2 * time.Minute) // of the simulated clock
		require.EqualError(t, good.Ready(time.Minute),
			"nothing heard for 2m0s, allowed are 1m0s (silent: nothing came within the liveness period)")
		require.NoError(t, good.Ready(3*time.Minute))
		cancel()
		synctest.Wait()
	})
}
