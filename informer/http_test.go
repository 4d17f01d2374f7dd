package informer_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/server/watchcache"
)

// patience is the limit for a step over a real connection.
const patience = time.Minute

// TestOverHTTP follows the pods of one node over HTTP. A pod that leaves the node is deleted,
// writes are read back, and the informer recovers from an expired watch.
func TestOverHTTP(t *testing.T) {
	s := listwatchtest.NewServer(t, watchcache.WithBookmarkInterval(20*time.Millisecond))
	collection := listwatchtest.Serve(s, listwatchtest.Pods()).Origin()
	listener := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Origin().Close()
		listener.Close()
	})
	client, err := kubernetes.NewForConfig(&rest.Config{Host: listener.URL, QPS: -1})
	require.NoError(t, err)
	pods := client.CoreV1().Pods("ns")
	i := informer.New(listwatch.FromClient[corev1.Pod](client.CoreV1().RESTClient(), "pods",
		listwatch.Fields(fields.OneTermEqualSelector("spec.nodeName", "n1"))))

	events := make(chan podEvent, 100)
	add(t, i, func(e podEvent) { events <- e })
	start(t, i)
	require.NoError(t, i.WaitSynced(t.Context()))

	create := func(name, node string) *corev1.Pod {
		pod, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "image"}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, i.WaitFor(t.Context(), pod))
		return pod
	}
	await := func() podEvent {
		select {
		case e := <-events:
			return e
		case <-time.After(patience):
			t.Fatal("no event")
			return podEvent{}
		}
	}

	a := create("a", "n1")
	held, ok := i.Snapshot().Get("ns/a")
	require.True(t, ok, "one's own write is read")
	require.Equal(t, a.ResourceVersion, held.ResourceVersion)
	require.Equal(t, informer.Added, await().Type)
	create("elsewhere", "n2") // only a bookmark brings this version
	_, ok = i.Snapshot().Get("ns/elsewhere")
	require.False(t, ok)

	a.Spec.NodeName = "n2"
	collection.Update(a) // by the server's owner: no client may move a pod
	gone := await()
	require.Equal(t, informer.Deleted, gone.Type)
	require.Equal(t, "n1", gone.Old.Spec.NodeName, "the last state in the collection")
	require.False(t, gone.Missed)

	b := create("b", "n1")
	require.Equal(t, "ns/b", await().Key)
	now := int64(0)
	require.NoError(t, pods.Delete(t.Context(), "b", metav1.DeleteOptions{GracePeriodSeconds: &now}))
	require.NoError(t, i.WaitForDeletion(t.Context(), b))
	_, ok = i.Snapshot().Get("ns/b")
	require.False(t, ok)
	last := await()
	for last.Type == informer.Updated { // the pod is first marked for deletion
		last = await()
	}
	require.Equal(t, informer.Deleted, last.Type)
	require.Equal(t, b.UID, last.Old.UID)

	create("c", "n1")
	collection.Expire()
	create("d", "n1")
	require.Equal(t, "ns/c", await().Key)
	require.Equal(t, "ns/d", await().Key)
	d, err := i.Verify(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, d.Objects)
	require.Zero(t, d.Count)
}

// TestStalledHandlerIsBounded: a stalled handler keeps alive the collection that it was last told,
// not the changes since. Module bench compares with client-go.
func TestStalledHandlerIsBounded(t *testing.T) {
	const pods, events = 1_000, 40_000
	idle := heapAfter(t, false, pods, events)
	stalled := heapAfter(t, true, pods, events)
	t.Logf("heap: %.1f MB without a stalled handler, %.1f MB with one", idle/1e6, stalled/1e6)
	require.Less(t, stalled-idle, 3.5*pods*2_500+2e6, "the collection, and the ring's old versions; all events would be 100 MB")
}
