package watchcache_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// TestARelistIsTold: a relist in which more has changed than the window holds is told to
// the watchers of one value, object by object. A watcher of everything gets one 410.
func TestARelistIsTold(t *testing.T) {
	const nodes, window = 100, 8
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, watchcache.WithWindow(window))
		list := func(version int, skip int) (pods []*corev1.Pod) {
			for i := range nodes {
				if i == skip {
					continue
				}
				p := stored(fmt.Sprint("pod-", i), version+i)
				onNode(fmt.Sprint("node-", i))(p)
				pods = append(pods, p)
			}
			return pods
		}
		require.NoError(t, c.Replace(store.Items(list(1, -1)...), store.At("200")))
		everything := follows(t.Context(), c, metav1.ListOptions{ResourceVersion: "200"})
		var byNode []<-chan string
		for i := range nodes {
			byNode = append(byNode, follows(t.Context(), c, metav1.ListOptions{
				ResourceVersion: "200", FieldSelector: fmt.Sprintf("spec.nodeName=node-%d", i),
			}))
		}
		synctest.Wait()
		require.NoError(t, c.Replace(store.Items(list(201, 7)...), store.At("400")))
		for i, lines := range byNode {
			want := fmt.Sprintf("MODIFIED pod-%d@%d", i, 201+i)
			if i == 7 {
				want = "DELETED pod-7@400"
			}
			require.Equal(t, want, <-lines)
		}
		require.Equal(t, "410", <-everything)
		_, more := <-everything
		require.False(t, more)
		moved := stored("pod-7", 401)
		onNode("node-8")(moved)
		require.NoError(t, c.Add(moved))
		require.Equal(t, "ADDED pod-7@401", <-byNode[8])
	})
}

// TestARelistIsToldInBatches: a watcher that stops reading keeps no more of a large relist alive
// than of other changes.
func TestARelistIsToldInBatches(t *testing.T) {
	const objects, most = 1000, 128
	for name, selector := range map[string]string{"everything": "", "one value": "spec.nodeName=n1"} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t)
			list := func(version int) (pods []*corev1.Pod) {
				for i := range objects {
					p := stored(fmt.Sprint("pod-", i), version+i)
					onNode("n1")(p)
					pods = append(pods, p)
				}
				return pods
			}
			require.NoError(t, c.Replace(store.Items(list(1)...), store.At("1000")))
			w := watcherOf(t, c, metav1.ListOptions{ResourceVersion: "1000", FieldSelector: selector})
			defer w.Close()
			require.NoError(t, c.Replace(store.Items(list(1001)...), store.At("2000")))
			for version := 1001; version <= 2000; {
				events, err := w.Next(t.Context())
				require.NoError(t, err)
				require.LessOrEqual(t, len(events), most)
				for _, e := range events {
					require.Equal(t, fmt.Sprintf("MODIFIED pod-%d@%d", version-1001, version), seen(e.Event))
					version++
				}
			}
		})
	}
}
