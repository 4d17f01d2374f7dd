package listwatch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/internal/sending"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestTheLimiterIsForLists: the client's rate limiter delays lists, those of one object too. It
// delays neither watches nor watch lists, as with client-go.
func TestTheLimiterIsForLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listwatchtest.NewServer(t)
		pods := listwatchtest.Serve(server, listwatchtest.Pods())
		pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
		config := server.Config()
		config.QPS, config.Burst = 1, 1
		lw := listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods")
		took := func(request func()) time.Duration {
			began := time.Now()
			request()
			return time.Since(began)
		}
		var waits []sending.Wait
		var ended []time.Time
		ctx := sending.For(t.Context(), sending.Reader{Waits: func(w sending.Wait) func() {
			waits = append(waits, w)
			return func() { ended = append(ended, time.Now()) }
		}})
		list := func() {
			_, _, errs := readList(lw.List(ctx, metav1.ListOptions{Limit: 1}))
			require.Empty(t, errs)
		}
		watch := func(options metav1.ListOptions) {
			options.AllowWatchBookmarks = true
			for _, err := range lw.Watch(ctx, options) {
				require.NoError(t, err)
				break
			}
		}
		require.Zero(t, took(list), "of the burst")
		require.Zero(t, took(func() {
			for range 20 {
				watch(metav1.ListOptions{ResourceVersion: "0"})
				watch(metav1.ListOptions{SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
			}
		}))
		require.Empty(t, waits)
		began := time.Now()
		require.Equal(t, time.Second, took(list))
		require.Equal(t, []sending.Wait{{For: sending.Limiter, Since: began, QPS: 1}}, waits)
		require.Equal(t, []time.Time{began.Add(time.Second)}, ended)

		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second/2, cancel)
		_, _, errs := readList(lw.List(ctx, metav1.ListOptions{}))
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], context.Canceled)
		require.ErrorContains(t, errs[0], "waited 500ms for its turn (rest.Config.QPS is 1)")
		require.Len(t, ended, 2)
	})
}

// TestARequestThatYieldsLetsOthersGoFirst: the proofs of many copies do not stand before the
// program's own requests in the limiter's queue.
func TestARequestThatYieldsLetsOthersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listwatchtest.NewServer(t)
		listwatchtest.Serve(server, listwatchtest.Pods())
		config := server.Config()
		config.QPS, config.Burst = 2, 2
		lw := listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods")
		list := func(ctx context.Context) {
			if _, _, errs := readList(lw.List(ctx, metav1.ListOptions{Limit: 1})); len(errs) > 0 {
				t.Error(errs)
			}
		}
		began, sent := time.Now(), atomic.Int32{}
		proof := sending.For(t.Context(), sending.Reader{Yields: true, Waits: func(sending.Wait) func() { return func() {} }})
		for range 40 {
			go func() { list(proof); sent.Add(1) }()
		}
		synctest.Wait()
		require.EqualValues(t, 2, sent.Load())
		own := time.Now()
		for range 4 {
			list(t.Context())
		}
		require.LessOrEqual(t, time.Since(own), 2*time.Second, "as if it were alone")
		require.LessOrEqual(t, sent.Load(), int32(3))
		for sent.Load() < 40 {
			time.Sleep(time.Second)
			synctest.Wait()
		}
		require.Less(t, time.Since(began), 40*time.Second, "no part of the pace is lost for long")
	})
}
