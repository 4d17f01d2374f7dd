package etcd_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/etcd"
)

func from(revision int64) metav1.ListOptions {
	return metav1.ListOptions{ResourceVersion: at(revision)}
}

// TestOneRevisionStaysTogether: the changes of a transaction come in one piece. A reader that stops
// between them and comes back misses none.
func TestOneRevisionStaysTogether(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	first := put(t, client, pod("gone"))
	answer, err := client.Txn(t.Context()).Then(
		clientv3.OpPut(keyOf(pod("a")), string(podValue(t, pod("a")))),
		clientv3.OpPut(keyOf(pod("b")), string(podValue(t, pod("b")))),
		clientv3.OpDelete(keyOf(pod("gone"))),
	).Commit()
	require.NoError(t, err)
	second := answer.Header.Revision
	third := put(t, client, pod("c"))

	source := etcd.New[corev1.Pod](client, pods)
	w := watchFrom(t, source, from(first))
	resume := ""
	for _, want := range []string{
		fmt.Sprintf("ADDED a@%d resume %d", second, first),
		fmt.Sprintf("ADDED b@%d resume %d", second, first),
		fmt.Sprintf("DELETED gone@%d", second),
		fmt.Sprintf("ADDED c@%d", third),
	} {
		e := w.next()
		require.Equal(t, want, seen(e))
		if e.Object.Name == "b" {
			resume = e.ResourceVersion
		}
	}
	again := watchFrom(t, source, metav1.ListOptions{ResourceVersion: resume})
	require.Equal(t, fmt.Sprintf("ADDED a@%d resume %d", second, first), seen(again.next()))
}

// TestFragments: an answer that is larger than etcd sends in one message comes whole, in order. Of
// values that are known to be small, etcd sends it in one message.
func TestFragments(t *testing.T) {
	const n = 300
	tap := &tap{}
	fragments := 0
	tap.watched = func(answer *etcdserverpb.WatchResponse) {
		if answer.Fragment {
			fragments++
		}
	}
	client := connect(t, tap.config(), start(t, func(c *embed.Config) { c.MaxRequestBytes = 600 << 10 }))
	source := etcd.New[corev1.Pod](client, pods)
	follow := func(after, last int64) {
		fragments = 0
		w := watchFrom(t, source, from(after))
		for i := range n {
			e := w.next()
			require.Equal(t, fmt.Sprintf("pod-%05d", i), e.Object.Name)
			require.Equal(t, i == n-1, e.ResourceVersion == at(last))
		}
	}
	first := put(t, client, pod("first"))
	large := fill(t, client, n)
	follow(first, large)
	require.Positive(t, fragments)
	small := fillWith(t, client, n, 1000)
	read(t, source.List(t.Context(), metav1.ListOptions{}))
	follow(large, small)
	require.Zero(t, fragments, "the values are known to be small")
}

// TestProgressWhereNobodyWrites: bookmarks come from the version of the reader on, though etcd
// tells no progress to a watch that begins after it.
func TestProgressWhereNobodyWrites(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	revision := put(t, client, pod("a"))
	source := etcd.New[corev1.Pod](client, pods, etcd.WithProgressEvery(10*time.Millisecond))
	options := from(revision)
	options.AllowWatchBookmarks = true
	w := watchFrom(t, source, options)
	for range 3 {
		require.Equal(t, fmt.Sprint("BOOKMARK ", revision), seen(w.next()))
	}
	elsewhere := putValue(t, client, "/registry/leases/ns/a", []byte("{}"))
	for {
		if e := w.next(); e.ResourceVersion == at(elsewhere) {
			break
		}
	}
}

// TestProgressOvertakesEvents: an event that is older than a bookmark that was told means that the
// reader was told wrong: 410, and it lists anew (etcd issue 15220).
func TestProgressOvertakesEvents(t *testing.T) {
	tap := &tap{}
	overtake := true
	tap.watched = func(answer *etcdserverpb.WatchResponse) {
		if len(answer.Events) > 0 && overtake {
			answer.Events, answer.WatchId, overtake = nil, clientv3.InvalidWatchID, false
			answer.Header.Revision += 100
		}
	}
	client := connect(t, tap.config(), start(t))
	revision := put(t, client, pod("a"))
	source := etcd.New[corev1.Pod](client, pods)
	put(t, client, pod("b"))
	options := from(revision)
	options.AllowWatchBookmarks = true
	w := watchFrom(t, source, options)
	mark := w.next()
	require.Equal(t, watch.Bookmark, mark.Type)
	put(t, client, pod("c"))
	err := w.failure()
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	require.ErrorContains(t, err, "15220")
}

// TestOldServersAreNotAskedForProgress: those that can answer before they have sent the events.
func TestOldServersAreNotAskedForProgress(t *testing.T) {
	server := start(t)
	for version, asked := range map[string]bool{
		"3.4.30": false, "3.4.31": true, "3.5.12": false, "3.5.13": true, "3.6.0": true, "3.7.3": true, "4.0.0": true,
		"3.3.9": false, "nonsense": false,
	} {
		t.Run(version, func(t *testing.T) {
			tap := &tap{version: version}
			client := connect(t, tap.config(), server)
			revision := put(t, client, pod("a"))
			source := etcd.New[corev1.Pod](client, pods, etcd.WithProgressEvery(time.Millisecond))
			options := from(revision)
			options.AllowWatchBookmarks = true
			w := watchFrom(t, source, options)
			if asked {
				require.Equal(t, watch.Bookmark, w.next().Type)
				return
			}
			for i := range 20 { // each takes longer than a request for progress would
				p := pod("a", labelled("i", fmt.Sprint(i)))
				require.Equal(t, fmt.Sprint("MODIFIED a@", put(t, client, p)), seen(w.next()))
			}
			require.Zero(t, tap.progress.Load())
		})
	}
}

// TestNoDeletionIsLostAtCompaction: a watch from a version whose next change may be gone is a 410,
// not a watch without that change (etcd issues 18089 and 19179).
func TestNoDeletionIsLostAtCompaction(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	revision := put(t, client, pod("a"))
	deletion := remove(t, client, pods+"ns/a")
	put(t, client, pod("b"))
	compact(t, client, deletion)
	source := etcd.New[corev1.Pod](client, pods)
	err := watchFrom(t, source, from(revision)).failure()
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	require.Equal(t, "b", watchFrom(t, source, from(deletion)).next().Object.Name)
}

// TestDeletionWithoutLastState: a deletion whose last state was compacted away (etcd issue 10681)
// is told by name and version.
func TestDeletionWithoutLastState(t *testing.T) {
	tap := &tap{}
	tap.watched = func(answer *etcdserverpb.WatchResponse) {
		for _, e := range answer.Events {
			if e.Type == mvccpb.Event_DELETE {
				e.PrevKv = nil
			}
		}
	}
	client := connect(t, tap.config(), start(t))
	revision := put(t, client, pod("a"))
	deletion := remove(t, client, pods+"ns/a")
	for _, selector := range []string{"", "app=web"} {
		options := from(revision)
		options.LabelSelector = selector
		e := watchFrom(t, etcd.New[corev1.Pod](client, pods), options).next()
		require.Equal(t, fmt.Sprint("DELETED a@", deletion), seen(e))
		require.Equal(t, "ns", e.Object.Namespace)
	}
}

// TestVersionOfTheFuture: a watch from a version that etcd has not reached would be silent until
// then, and skip what happens before.
func TestVersionOfTheFuture(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	revision := put(t, client, pod("a"))
	err := watchFrom(t, etcd.New[corev1.Pod](client, pods), from(revision+1000)).failure()
	require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "%v", err)
	require.ErrorContains(t, err, fmt.Sprint("current: ", revision))
}

// TestAnotherCluster: revisions of another etcd mean nothing, and a watch says so once.
func TestAnotherCluster(t *testing.T) {
	tap := &tap{}
	client := connect(t, tap.config(), start(t))
	revision := put(t, client, pod("a"))
	source := etcd.New[corev1.Pod](client, pods)
	_, _ = read(t, source.List(t.Context(), metav1.ListOptions{}))
	put(t, client, pod("b"))
	require.Equal(t, "b", watchFrom(t, source, from(revision)).next().Object.Name)
	tap.cluster.Store(4711)
	err := watchFrom(t, source, from(revision)).failure()
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	require.Equal(t, "b", watchFrom(t, source, from(revision)).next().Object.Name)
}

// TestManyEventsInOrder: events that are decoded at once are told in order.
func TestManyEventsInOrder(t *testing.T) {
	const n = 1000
	client := connect(t, clientv3.Config{}, start(t))
	first := put(t, client, pod("0"))
	for i := 1; i <= n; i++ {
		put(t, client, pod("0", labelled("i", fmt.Sprint(i)), labelled("pad", strings.Repeat("x", i%50))))
	}
	w := watchFrom(t, etcd.New[corev1.Pod](client, pods), from(first))
	for i := 1; i <= n; i++ {
		e := w.next()
		require.Equal(t, watch.Modified, e.Type)
		require.Equal(t, fmt.Sprint(i), e.Object.Labels["i"])
		require.Equal(t, strings.Repeat("x", i%50), e.Object.Labels["pad"])
		require.Equal(t, at(first+int64(i)), e.Object.ResourceVersion)
	}
}
