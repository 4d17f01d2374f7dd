package watchcache_test

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// watcherOf makes a watcher of options.
func watcherOf(t testing.TB, c *watchcache.Cache[*corev1.Pod], options metav1.ListOptions) *watchcache.Watcher[*corev1.Pod] {
	t.Helper()
	r, err := watchcache.RequestOf(options)
	require.NoError(t, err)
	w, err := c.Watcher(r)
	require.NoError(t, err)
	return w
}

// waiting is a watcher for which nothing has come. ready is called when something may have.
func waiting(t testing.TB, c *watchcache.Cache[*corev1.Pod], options metav1.ListOptions, ready func()) *watchcache.Watcher[*corev1.Pod] {
	t.Helper()
	w := watcherOf(t, c, options)
	_, waits, err := w.Poll(t.Context(), ready)
	require.NoError(t, err)
	require.True(t, waits)
	return w
}

// TestAParkedWatcherIsClosed: a watcher that is closed while it waits takes nothing along of what
// others of its selection have still to read, and its function is called no more.
func TestAParkedWatcherIsClosed(t *testing.T) {
	for name, options := range mySelections {
		t.Run(name, func(t *testing.T) {
			c := newCache(t)
			require.NoError(t, c.Replace(store.Items(mine(1)), store.At("1")))
			options.ResourceVersion = "1"
			behind, parked := watcherOf(t, c, options), watcherOf(t, c, options)
			poll := func(w *watchcache.Watcher[*corev1.Pod], ready func()) (told []string) {
				events, _, err := w.Poll(t.Context(), ready)
				require.NoError(t, err)
				for _, e := range events {
					told = append(told, seen(e.Event))
				}
				return told
			}
			require.Empty(t, poll(behind, func() {}))
			require.Empty(t, poll(parked, func() {}))
			require.NoError(t, c.Update(mine(2)))
			require.Equal(t, []string{"MODIFIED mine@2"}, poll(parked, func() {}))
			require.Empty(t, poll(parked, func() { t.Error("a closed watcher is called") }))
			parked.Close()
			c.SendBookmarks() // calls whoever waits
			require.NoError(t, c.Update(mine(3)))
			require.Equal(t, []string{"MODIFIED mine@2", "MODIFIED mine@3"}, poll(behind, func() {}))
			require.Empty(t, poll(behind, func() {}))
			behind.Close()
			held := watchcache.HeldBy(c)
			require.Zero(t, held.Triggers+held.Members+held.Backlogged+int(held.Kept), "%+v", held)
		})
	}
}

// TestVisitsLeaveNothingBehind: of watchers that come from an old version, read what there is and
// go, nothing stays at the changes of a collection that is quiet from then on.
func TestVisitsLeaveNothingBehind(t *testing.T) {
	const changes, visits = 5, 300
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items(mine(1)), store.At("1")))
	for version := 2; version < 2+changes; version++ {
		require.NoError(t, c.Update(mine(version)))
	}
	for _, reads := range []bool{false, true} {
		var open []*watchcache.Watcher[*corev1.Pod]
		for i := range visits {
			for _, options := range mySelections {
				options.ResourceVersion = strconv.Itoa(1 + i%changes)
				w := watcherOf(t, c, options)
				events, waits, err := w.Poll(t.Context(), func() {})
				require.NoError(t, err)
				require.NotEmpty(t, events, "%v", waits)
				if reads {
					_, waits, err = w.Poll(t.Context(), func() {})
					require.NoError(t, err)
					require.True(t, waits)
				}
				if i%2 == 0 {
					w.Close() // alone; the others leave together
					continue
				}
				open = append(open, w)
			}
		}
		for _, w := range open {
			w.Close()
		}
		held := watchcache.HeldBy(c)
		require.Zero(t, held.Triggers+held.Members+held.Backlogged+int(held.Kept), "%+v", held)
		require.LessOrEqual(t, held.Noted, changes*(2*len(mySelections)+watchcache.FewNoted), "reads: %v", reads)
	}
}

// TestALongPastIsToldToItsEnd: a watcher that comes from long ago, and is the first of its
// selection, is told all changes, though nothing new comes: in one go, or closed in between.
func TestALongPastIsToldToItsEnd(t *testing.T) {
	const writes = 300 // more than a batch, and than two
	for name, options := range mySelections {
		for _, closed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s closed %t", name, closed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCache(t)
					require.NoError(t, c.Replace(store.Items(mine(1)), store.At("1")))
					options.ResourceVersion = "1"
					w := watcherOf(t, c, options)
					for version := 2; version < 2+writes; version++ {
						require.NoError(t, c.Update(mine(version)))
					}
					for version := 2; version < 2+writes; {
						events, err := w.Next(t.Context())
						require.NoError(t, err)
						for _, e := range events {
							require.Equal(t, fmt.Sprint("MODIFIED mine@", version), seen(e.Event))
							version++
						}
						if closed {
							w.Close()
						}
					}
					w.Close()
				})
			})
		}
	}
}
