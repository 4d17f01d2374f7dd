package watchcache_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// TestAHundredThousandWatchers: of 100,000 watchers of 100,000 selections, a write wakes those that
// its object concerns, and no others. Nobody reads while the window moves on 60 times over. Then
// each is told all of its changes, in order and once, lists at two versions show what was there,
// and nothing is left of the watchers in the end.
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
	for _, back := range []int{0, window / 2} {
		r := watchcache.Request{}
		r.ResourceVersion, r.ResourceVersionMatch = strconv.Itoa(version-back), metav1.ResourceVersionMatchExact
		page, err := c.Page(t.Context(), r)
		require.NoError(t, err)
		require.Len(t, page.Objects, written)
		for _, p := range page.Objects {
			i, err := strconv.Atoi(strings.TrimPrefix(p.Name, "pod-"))
			require.NoError(t, err)
			last := want[i][rounds-1]
			if i >= written-back {
				last = want[i][rounds-2]
			}
			require.Equal(t, last, fmt.Sprintf("MODIFIED %s@%s", p.Name, p.ResourceVersion))
		}
	}
	require.Equal(t, watchers, watchcache.HeldBy(c).Members)
	for _, w := range slices.Backward(all) {
		w.Close()
	}
	held := watchcache.HeldBy(c)
	require.Zero(t, held.Triggers+held.Members+held.Backlogged+int(held.Kept), "%+v", held)
}

// crowd has 100,000 watchers wait at a cache, each of its own selection, that never read. All ask
// for a value that others do not, but for one in a thousand, which are told of nearly everything.
func crowd(t testing.TB, c *watchcache.Cache[*corev1.Pod]) {
	t.Helper()
	for i := range 100_000 {
		operator := "="
		if i%1000 == 0 {
			operator = "!="
		}
		waiting(t, c, metav1.ListOptions{
			ResourceVersion: c.ResourceVersion(), FieldSelector: fmt.Sprintf("spec.nodeName%scrowd-%d", operator, i),
		}, func() {})
	}
}

// TestNoMoreAreCutThanTheBytesAskFor: of many slow watchers that have one change each, those few
// are cut whose changes do not fit, and not everybody.
func TestNoMoreAreCutThanTheBytesAskFor(t *testing.T) {
	const bound, watchers = 64 << 10, 24
	c := newCache(t, watchcache.WithWindowBytes(4*bound))
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	var slow []*watchcache.Watcher[*corev1.Pod]
	version := 1
	for range 2 {
		for i := range watchers {
			node := fmt.Sprintf("n%03d", i)
			if len(slow) < watchers {
				options := metav1.ListOptions{ResourceVersion: "1", FieldSelector: "spec.nodeName=" + node}
				slow = append(slow, waiting(t, c, options, func() {}))
				continue
			}
			version++
			p := stored("on-"+node, version)
			onNode(node)(p)
			p.Annotations = map[string]string{"text": strings.Repeat("x", 1<<10)}
			require.NoError(t, c.Add(p))
			p = p.DeepCopy()
			version++
			p.ResourceVersion = strconv.Itoa(version)
			onNode("elsewhere")(p)
			require.NoError(t, c.Update(p)) // a departure, which keeps the old object
		}
	}
	for range 400 { // until the window has dropped all of them
		version++
		require.NoError(t, c.Update(stored("other", version)))
	}
	require.LessOrEqual(t, watchcache.HeldBy(c).Kept, int64(bound))
	cut := 0
	for _, w := range slow {
		if events, err := w.Next(t.Context()); err != nil {
			cut++
		} else {
			require.Len(t, events, 2)
		}
		w.Close()
	}
	t.Log(cut, "of", watchers, "were cut")
	require.Positive(t, cut)
	require.LessOrEqual(t, cut, watchers/2)
	held := watchcache.HeldBy(c)
	require.Zero(t, held.Triggers+held.Members+held.Backlogged+int(held.Kept), "%+v", held)
}

// TestListsOfSlowWatchersAreBounded: hundreds of watchers that never read, each of nearly
// everything in its own way, have lists of changes within the bytes for slow watchers.
func TestListsOfSlowWatchersAreBounded(t *testing.T) {
	const bound, watchers, writes = 256 << 10, 300, 2000
	c := newCache(t, watchcache.WithWindowBytes(4*bound))
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	var slow []*watchcache.Watcher[*corev1.Pod]
	for i := range watchers {
		options := metav1.ListOptions{ResourceVersion: "1", FieldSelector: fmt.Sprint("spec.nodeName!=n", i)}
		slow = append(slow, waiting(t, c, options, func() {}))
	}
	for version := 2; version < 2+writes; version++ {
		require.NoError(t, c.Update(stored("a", version)))
		held := watchcache.HeldBy(c)
		require.LessOrEqual(t, held.Kept, int64(bound))
		require.LessOrEqual(t, watchcache.ListedWeight*held.Listed, bound)
	}
	for _, w := range slow {
		_, err := w.Next(t.Context())
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)
		w.Close()
	}
	held := watchcache.HeldBy(c)
	require.Zero(t, held.Triggers+held.Members+held.Backlogged+int(held.Kept), "%+v", held)
}
