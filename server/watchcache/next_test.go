package watchcache_test

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// observed is a cache of pods with a field whose function calls look.
func observed(t *testing.T, look func()) *watchcache.Cache[*corev1.Pod] {
	t.Helper()
	pods := watchcache.Pods()
	pods.Fields = append(pods.Fields, watchcache.Field[*corev1.Pod]{Label: "observed", Value: func(*corev1.Pod) string {
		look()
		return "yes"
	}})
	c, err := watchcache.NewCache(pods)
	require.NoError(t, err)
	require.NoError(t, c.Replace(store.Items(mine(1)), store.At("1")))
	return c
}

// TestMuchToLookThroughHoldsNobodyUp: a watcher that comes from long ago goes through the window in
// its own goroutine, and others are served meanwhile.
func TestMuchToLookThroughHoldsNobodyUp(t *testing.T) {
	const writes = 200
	for name, selector := range map[string]string{"all": "observed!=no", "one value": "observed=yes"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held := make(chan struct{})
				armed := false
				c := observed(t, func() {
					if armed {
						<-held
					}
				})
				quick := follows(t.Context(), c, metav1.ListOptions{ResourceVersion: "1", FieldSelector: "metadata.name=mine"})
				for version := 2; version <= writes; version++ {
					require.NoError(t, c.Update(mine(version)))
					require.Equal(t, fmt.Sprintf("MODIFIED mine@%d", version), <-quick)
				}
				synctest.Wait()
				armed = true
				slow := follows(t.Context(), c, metav1.ListOptions{ResourceVersion: "1", FieldSelector: selector})
				synctest.Wait() // until its field is asked for
				require.NoError(t, c.Update(mine(writes+1)))
				require.Equal(t, fmt.Sprintf("MODIFIED mine@%d", writes+1), <-quick)
				close(held)
				for version := 2; version <= writes+1; version++ {
					require.Equal(t, fmt.Sprintf("MODIFIED mine@%d", version), <-slow)
				}
			})
		})
	}
}

// TestAPanicReachesItsWatcher: the panic of a field's function is one of the call of Next, where
// net/http recovers it, and not of the program. Others are served as before.
func TestAPanicReachesItsWatcher(t *testing.T) {
	armed := false
	c := observed(t, func() {
		if armed {
			panic("a field that fails")
		}
	})
	require.NoError(t, c.Update(mine(2)))
	options := func(selector string) metav1.ListOptions {
		return metav1.ListOptions{ResourceVersion: "1", FieldSelector: selector}
	}
	fails, other := watcherOf(t, c, options("observed=yes")), watcherOf(t, c, options("metadata.name=mine"))
	armed = true
	func() {
		defer func() { require.Equal(t, "a field that fails", recover()) }()
		_, _ = fails.Next(t.Context())
	}()
	armed = false
	for _, w := range []*watchcache.Watcher[*corev1.Pod]{other, fails} {
		events, err := w.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 1)
		w.Close()
	}
}

// TestPollThenNext: a watcher that has waited by Poll may wait by Next, and the other way round.
func TestPollThenNext(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items(mine(1)), store.At("1")))
	w := watcherOf(t, c, metav1.ListOptions{ResourceVersion: "1", FieldSelector: "metadata.name=mine"})
	defer w.Close()
	for version := 2; version < 40; version += 2 {
		ready := make(chan struct{})
		_, waits, err := w.Poll(t.Context(), func() { close(ready) })
		require.NoError(t, err)
		require.True(t, waits)
		require.NoError(t, c.Update(mine(version)))
		<-ready
		events, err := w.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 1)
		require.Equal(t, strconv.Itoa(version), events[0].Object.ResourceVersion)
		next := make(chan string)
		go func() {
			events, err := w.Next(t.Context())
			if err != nil || len(events) != 1 {
				next <- fmt.Sprint(events, err)
				return
			}
			next <- events[0].Object.ResourceVersion
		}()
		require.NoError(t, c.Update(mine(version+1)))
		require.Equal(t, strconv.Itoa(version+1), <-next)
	}
}

// TestAnErrorEndsAWatch: a watcher that is asked again after its error has the same one, and is
// counted as cut once.
func TestAnErrorEndsAWatch(t *testing.T) {
	const window = 4
	c := newCache(t, watchcache.WithWindow(window))
	require.NoError(t, c.Replace(store.Items(mine(1)), store.At("1")))
	w := watcherOf(t, c, metav1.ListOptions{ResourceVersion: "1"})
	defer w.Close()
	for version := 2; version < 4+window; version++ {
		require.NoError(t, c.Update(mine(version)))
	}
	_, err := w.Next(t.Context())
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	for range 3 {
		_, again := w.Next(t.Context())
		require.Equal(t, err, again)
		_, waits, again := w.Poll(t.Context(), func() {})
		require.False(t, waits)
		require.Equal(t, err, again)
	}
	require.Equal(t, 1.0, numbers(c)["tributary_watch_cache_cut_watchers_total count"])
}
