package watchcache_test

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// TestNobodyIsCutForValuesThatOthersShare: selections of several values, and of none, under changes
// of objects that have all but one of them. A watcher is behind while the window moves on many
// times over.
func TestNobodyIsCutForValuesThatOthersShare(t *testing.T) {
	const window, own = 4, 3
	for name, c := range map[string]struct {
		options metav1.ListOptions
		other   func(*corev1.Pod)
	}{
		"label and field": {
			metav1.ListOptions{LabelSelector: "app=mine", FieldSelector: "spec.nodeName=n1"},
			onNode("n1"),
		},
		"namespace and field": {
			metav1.ListOptions{FieldSelector: "metadata.namespace=home,spec.nodeName=n1"},
			onNode("n1"),
		},
		"namespace and label": {
			metav1.ListOptions{FieldSelector: "metadata.namespace=home", LabelSelector: "app=mine"},
			func(p *corev1.Pod) { p.Namespace = "home" },
		},
		"a value and not another": {
			metav1.ListOptions{FieldSelector: "spec.nodeName=n1", LabelSelector: "tier!=back"},
			func(p *corev1.Pod) { onNode("n1")(p); labelled("tier", "back")(p) },
		},
		"not a value":       {metav1.ListOptions{FieldSelector: "spec.nodeName!=n7"}, onNode("n7")},
		"one of two values": {metav1.ListOptions{LabelSelector: "app in (mine,yours)"}, labelled("app", "theirs")},
		"any value":         {metav1.ListOptions{LabelSelector: "app"}, onNode("n1")},
		"no value":          {metav1.ListOptions{LabelSelector: "!tier"}, labelled("tier", "back")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache := newCache(t, watchcache.WithWindow(window))
				require.NoError(t, cache.Replace(store.Items(mine(1)), store.At("1")))
				c.options.ResourceVersion = "1"
				lines := follows(t.Context(), cache, c.options)
				synctest.Wait()
				version := 1
				var want []string
				for range own {
					version++
					require.NoError(t, cache.Update(mine(version)))
					want = append(want, "MODIFIED mine@"+strconv.Itoa(version))
					for i := range 5 * window {
						version++
						other := stored(fmt.Sprint("other", i), version)
						c.other(other)
						require.NoError(t, cache.Update(other))
					}
				}
				for _, line := range want {
					require.Equal(t, line, <-lines)
				}
			})
		})
	}
}

// TestNobodyIsCutBeforeItHasCaughtUp: a watcher that reads its initial events slowly, or a history
// that is longer than a batch, is not cut for the changes of others meanwhile.
func TestNobodyIsCutBeforeItHasCaughtUp(t *testing.T) {
	const window, many = 400, 300
	own := func(i, version int) *corev1.Pod {
		p := stored(fmt.Sprintf("mine-%03d", i), version)
		onNode("n1")(p)
		return p
	}
	for name, from := range map[string]string{"initial events": "", "history": "1"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache := newCache(t, watchcache.WithWindow(window))
				require.NoError(t, cache.Replace(store.Items[*corev1.Pod](), store.At("1")))
				version := 1
				var want []string
				for i := range many {
					version++
					require.NoError(t, cache.Add(own(i, version)))
					want = append(want, fmt.Sprintf("ADDED mine-%03d@%d", i, version))
				}
				lines := follows(t.Context(), cache, metav1.ListOptions{ResourceVersion: from, FieldSelector: "spec.nodeName=n1"})
				synctest.Wait()
				for round := range 3 {
					for i := range 2 * window {
						version++
						require.NoError(t, cache.Update(stored(fmt.Sprint("other-", i), version)))
					}
					version++
					require.NoError(t, cache.Update(own(0, version)))
					want = append(want, fmt.Sprintf("MODIFIED mine-000@%d", version))
					for range 50 * round {
						require.Equal(t, want[0], <-lines)
						want = want[1:]
					}
				}
				for _, line := range want {
					require.Equal(t, line, <-lines)
				}
			})
		})
	}
}

// TestTheBacklogOfOneIsNotTheLossOfAnother: of the bytes that are kept for slow watchers, those who
// keep the most lose first, though others have kept theirs for longer.
func TestTheBacklogOfOneIsNotTheLossOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := newCache(t, watchcache.WithWindowBytes(256<<10))
		require.NoError(t, cache.Replace(store.Items[*corev1.Pod](), store.At("1")))
		patient := follows(t.Context(), cache, metav1.ListOptions{ResourceVersion: "1", FieldSelector: "spec.nodeName=n2"})
		greedy := follows(t.Context(), cache, metav1.ListOptions{ResourceVersion: "1", FieldSelector: "spec.nodeName=n1"})
		synctest.Wait()
		version := 1
		put := func(node string) {
			version++
			p := stored("of-"+node, version)
			onNode(node)(p)
			require.NoError(t, cache.Update(p))
		}
		for range 3 {
			put("n2")
		}
		for range 5000 {
			put("n1")
		}
		require.Equal(t, "ADDED of-n2@2", <-patient)
		require.Equal(t, "MODIFIED of-n2@3", <-patient)
		require.Equal(t, "MODIFIED of-n2@4", <-patient)
		told := 0
		for line := range greedy {
			if told++; line == "410" {
				break
			}
		}
		require.Less(t, told, 5000)
	})
}

// TestStuckReadersHoldUpNobody: beside 100,000 watchers that never come back, and a list that stops
// in the middle, writes, lists and watchers go on. A reader that waited for one of these would
// never end.
func TestStuckReadersHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window, writes = 8, 100
		cache := newCache(t, watchcache.WithWindow(window))
		require.NoError(t, cache.Replace(store.Items(mine(1)), store.At("1")))
		for name, options := range mySelections {
			options.ResourceVersion = "1"
			r, err := watchcache.RequestOf(options)
			require.NoError(t, err)
			w, err := cache.Watcher(r)
			require.NoError(t, err)
			_, waits, err := w.Poll(t.Context(), func() {})
			require.NoError(t, err)
			require.True(t, waits, name)
		}
		crowd(t, cache)
		stuck, release := make(chan struct{}), make(chan struct{})
		go func() {
			page, err := cache.Page(t.Context(), watchcache.Request{})
			if err == nil {
				_, err = page.Encode("stuck", func(*corev1.Pod) ([]byte, error) {
					close(stuck)
					<-release
					return nil, nil
				}).Bytes(0)
			}
			if err != nil {
				t.Error(err)
			}
		}()
		<-stuck
		defer close(release)
		lines := follows(t.Context(), cache, metav1.ListOptions{ResourceVersion: "1"})
		for version := 2; version < 2+writes; version++ {
			require.NoError(t, cache.Update(mine(version)))
			require.Equal(t, fmt.Sprintf("MODIFIED mine@%d", version), <-lines)
			(&counter{}).encodedPage(t, cache, watchcache.Request{})
		}
		require.NoError(t, cache.Replace(store.Items(mine(2+writes)), store.At(strconv.Itoa(2+writes))))
		require.Equal(t, fmt.Sprintf("MODIFIED mine@%d", 2+writes), <-lines)
	})
}

// TestAWriterDoesNotWaitForManyWatchers: they are woken beside it. Each is woken once for the
// writes meanwhile, and told all of them.
func TestAWriterDoesNotWaitForManyWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const watchers, writes = 500, 20
		cache := newCache(t)
		require.NoError(t, cache.Replace(store.Items(mine(1)), store.At("1")))
		written, wakings := make(chan struct{}), atomic.Int32{}
		var all []*watchcache.Watcher[*corev1.Pod]
		for range watchers {
			all = append(all, waiting(t, cache, metav1.ListOptions{ResourceVersion: "1"}, func() {
				<-written
				wakings.Add(1)
			}))
		}
		for version := 2; version < 2+writes; version++ {
			require.NoError(t, cache.Update(mine(version)))
		}
		close(written)
		synctest.Wait()
		require.EqualValues(t, watchers, wakings.Load())
		for _, w := range all {
			events, _, err := w.Poll(t.Context(), func() {})
			require.NoError(t, err)
			require.Len(t, events, writes)
			w.Close()
		}
	})
}
