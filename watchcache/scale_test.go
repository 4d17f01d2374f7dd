package watchcache_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
)

// TestAHundredThousandWatchers: of 100,000 watchers of 100,000 selections, a write wakes those that
// its object concerns, and no others. Nobody reads while the window moves on 60 times over. Then
// each is told all of its changes, in order and once, and nothing is left of them in the end.
func TestAHundredThousandWatchers(t *testing.T) {
	const watchers, window, rounds, written = 100_000, 64, 4, 1000
	c := newCache(t, watchcache.WithWindow(window))
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	var all []*watchcache.Watcher[*corev1.Pod]
	woken := make([]atomic.Int32, watchers)
	wait := func(i int) []watchcache.Delivery[*corev1.Pod] {
		events, waits, err := all[i].Poll(t.Context(), func() { woken[i].Add(1) })
		require.NoError(t, err)
		require.NotEqual(t, waits, len(events) > 0)
		return events
	}
	for i := range watchers {
		options := metav1.ListOptions{ResourceVersion: "1"}
		name, node, app := fmt.Sprint("pod-", i/4), fmt.Sprint("node-", i/4), fmt.Sprint("app-", i/4)
		switch i % 4 {
		case 0:
			options.FieldSelector = "spec.nodeName=" + node
		case 1:
			options.FieldSelector = "metadata.namespace=ns,metadata.name=" + name
		case 2:
			options.LabelSelector = "app=" + app
		case 3:
			options.FieldSelector, options.LabelSelector = "spec.nodeName="+node, "tier!=back,app="+app
		}
		r, err := watchcache.RequestOf(options)
		require.NoError(t, err)
		w, err := c.Watcher(r)
		require.NoError(t, err)
		all = append(all, w)
		require.Empty(t, wait(i))
	}
	version := 1
	want := make([][]string, written)
	for round := range rounds {
		for i := range written {
			version++
			p := stored(fmt.Sprint("pod-", i), version)
			onNode(fmt.Sprint("node-", i))(p)
			labelled("app", fmt.Sprint("app-", i))(p)
			require.NoError(t, c.Update(p))
			event := "MODIFIED"
			if round == 0 {
				event = "ADDED"
			}
			want[i] = append(want[i], fmt.Sprintf("%s pod-%d@%d", event, i, version))
		}
	}
	for i := range woken {
		require.Equal(t, i/4 < written, woken[i].Load() == 1, "watcher %d was woken %d times", i, woken[i].Load())
	}
	for i := range 4 * written {
		var told []string
		for events := wait(i); len(events) > 0; events = wait(i) {
			for _, d := range events {
				told = append(told, seen(d.Event))
			}
		}
		require.Equal(t, want[i/4], told, "watcher %d", i)
	}
	require.Equal(t, strconv.Itoa(version), c.ResourceVersion())
	require.Equal(t, watchers, watchcache.HeldBy(c).Members)
	for _, w := range slices.Backward(all) {
		w.Close()
	}
	held := watchcache.HeldBy(c)
	require.Zero(t, held.Triggers+held.Members+held.Backlogged, "%+v", held)
}
