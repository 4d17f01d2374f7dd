package watchcache_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// TestWindowFollowsTheRate: it holds the changes of 75 seconds at any rate of writes, as its bytes
// allow, and more of a quiet collection.
func TestWindowFollowsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t)
		require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
		version := 1
		write := func(n int, every time.Duration) {
			for range n {
				time.Sleep(every) // of the simulated clock
				version++
				require.NoError(t, c.Update(stored("a", version)))
			}
		}
		for _, rate := range []int{100, 10, 200, 20, 1} {
			write(120*rate, time.Second/time.Duration(rate))
			held := watchcache.HeldBy(c)
			require.InDelta(t, max(75*rate, 1024), held.Window, 2, "at %d a second", rate)
			start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: strconv.Itoa(version - 74*rate)})).
				Require("MODIFIED a@" + strconv.Itoa(version-74*rate+1))
		}
	})
}

// fat is a pod of so many KiB.
func fat(version, kib int) *corev1.Pod {
	p := stored("fat", version)
	p.Annotations = map[string]string{"text": strings.Repeat(strconv.Itoa(version%10), kib<<10)}
	return p
}

// TestWindowIsBoundedInBytes: of large objects it holds few changes, and always the newest.
func TestWindowIsBoundedInBytes(t *testing.T) {
	const most = 1 << 20
	c := newCache(t, watchcache.WithWindowBytes(most))
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	for version := 2; version < 40; version++ {
		require.NoError(t, c.Update(fat(version, 100)))
	}
	held := watchcache.HeldBy(c)
	require.LessOrEqual(t, held.Bytes, int64(most/2))
	require.Equal(t, 5, held.Window)
	start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "33"})).RequireExpired()
	start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "37"})).Require("MODIFIED fat@38", "MODIFIED fat@39")
	for version := 40; version < 45; version++ {
		require.NoError(t, c.Update(fat(version, 3000)))
	}
	require.Equal(t, 1, watchcache.HeldBy(c).Window)
	start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "43"})).Require("MODIFIED fat@44")
}

// TestEncodingsAreMadeOnceAndBounded: watchers share the bytes of an event. A watcher that comes
// after they were dropped gets the same bytes, made again.
func TestEncodingsAreMadeOnceAndBounded(t *testing.T) {
	const most, writes, watchers = 1 << 20, 30, 8
	c := newCache(t, watchcache.WithWindowBytes(most))
	require.NoError(t, c.Replace(store.Items(stored("a", 1)), store.At("1")))
	request := watchcache.Request{}
	request.ResourceVersion = "1"
	early := make([]*watchcache.Watcher[*corev1.Pod], watchers)
	for i := range early {
		var err error
		early[i], err = c.Watcher(request)
		require.NoError(t, err)
		defer early[i].Close()
	}
	made := map[string]int{}
	var mu sync.Mutex
	encode := func(e listwatch.Event[*corev1.Pod]) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		made[e.ResourceVersion]++
		return []byte(strings.Repeat(e.ResourceVersion+" ", 4<<10)), nil
	}
	read := func(w *watchcache.Watcher[*corev1.Pod], events int) {
		for events > 0 {
			batch, err := w.Next(t.Context())
			require.NoError(t, err)
			for _, d := range batch {
				events--
				bytes, err := d.Encoded("format", encode)
				require.NoError(t, err)
				require.Equal(t, strings.Repeat(d.ResourceVersion+" ", 4<<10), string(bytes))
			}
		}
	}
	for version := 2; version < 2+writes; version++ {
		require.NoError(t, c.Update(stored("a", version)))
		var reading sync.WaitGroup
		for _, w := range early {
			reading.Go(func() { read(w, 1) })
		}
		reading.Wait()
		require.Equal(t, 1, made[strconv.Itoa(version)])
		require.LessOrEqual(t, watchcache.HeldBy(c).Encoded, int64(most/4))
	}
	late, err := c.Watcher(watchcache.Request{ListOptions: request.ListOptions})
	require.NoError(t, err)
	defer late.Close()
	read(late, writes)
	require.Equal(t, 2, made["2"], "the first were dropped, and made again")
	require.LessOrEqual(t, watchcache.HeldBy(c).Encoded, int64(most/4))
}

// TestABatchOfLargeEventsIsShort bounds what a watcher that stops reading keeps alive.
func TestABatchOfLargeEventsIsShort(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items(fat(1, 900)), store.At("1")))
	request := watchcache.Request{}
	request.ResourceVersion = "1"
	w, err := c.Watcher(request)
	require.NoError(t, err)
	defer w.Close()
	for version := 2; version < 12; version++ {
		require.NoError(t, c.Update(fat(version, 900)))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	batch, err := w.Next(ctx)
	require.NoError(t, err)
	require.LessOrEqual(t, len(batch), 2)
}
