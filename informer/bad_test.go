package informer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/reflector"
)

// TestPanicLeavesTheOthersWhole: a handler's panic ends Run. The other handlers were told a prefix
// of the events, and end as with ctx; the copy can still be read.
func TestPanicLeavesTheOthersWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		i := informer.New[*corev1.Pod](s)
		var r recorder
		other := add(t, i, r.handle)
		bad := add(t, i, func(e podEvent) {
			if e.Type == informer.Deleted {
				panic("oh")
			}
		}, informer.WithName("bad"))
		ran := make(chan error, 1)
		go func() { ran <- i.Run(t.Context()) }()
		require.Equal(t, []string{"added ns/a >1 initial"}, r.take())
		s.put("b")
		require.Equal(t, []string{"added ns/b >2"}, r.take())
		s.remove("a")
		s.put("b")
		const want = `informer: handler "bad" panicked: oh (at deleted ns/a)`
		require.EqualError(t, <-ran, want)
		all := []string{"deleted ns/a 3>", "updated ns/b 2>4"}
		for k, line := range r.take() { // the prefix's length depends on scheduling
			require.Equal(t, all[k], line)
		}
		require.NoError(t, i.Status().Handlers[0].Err)
		require.EqualError(t, i.Status().Handlers[1].Err, want)
		pod, ok := i.Snapshot().Get("ns/b")
		require.True(t, ok)
		require.Equal(t, "b", pod.Name)
		other.Remove()
		bad.Remove()
		require.Empty(t, i.Status().Handlers)
	})
}

func TestHandlersAreRefusedAfterTheEnd(t *testing.T) {
	i := informer.New[*corev1.Pod](newServer("a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, i.Run(ctx))
	_, err := i.AddHandler(func(podEvent) {})
	require.ErrorIs(t, err, informer.ErrStopped)
	require.EqualError(t, err, "informer: add a handler: the informer has stopped: handlers are added before or while Run runs")
}

func TestWithoutASource(t *testing.T) {
	i := informer.New[*corev1.Pod](nil)
	require.EqualError(t, i.Run(t.Context()), "informer: the source is nil")
	_, err := i.Verify(t.Context())
	require.EqualError(t, err, "informer: verify: informer: the source is nil")

	set := informer.NewSet(nil)
	_, err = informer.Acquire[corev1.Pod](set, podsResource)
	require.EqualError(t, err, "informer: NewSet: the config is nil")
	require.EqualError(t, set.Run(t.Context()), "informer: NewSet: the config is nil")

	set = informer.NewSet(&rest.Config{}, informer.WithReflector(reflector.WithLiveness(0)))
	_, err = informer.Acquire[corev1.Pod](set, podsResource)
	require.ErrorContains(t, err, "informer: WithReflector: reflector: WithLiveness(0s)")
	require.ErrorContains(t, set.Run(t.Context()), "WithLiveness(0s)")

	_, err = informer.NewUnion[*corev1.Pod]().Add("", newServer())
	require.EqualError(t, err, "informer: add a member: give it a name")
}

// TestWaitForAnObjectFromAnotherScope: in a collection, either all objects have a namespace or none
// has.
func TestWaitForAnObjectFromAnotherScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := running(t, newServer("a"))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}}
		const want = "informer: wait for a: it has no namespace, but this collection's objects have one"
		require.EqualError(t, i.WaitFor(t.Context(), pod), want)
		require.ErrorContains(t, i.WaitForDeletion(t.Context(), pod), "it has no namespace")
	})
}

// TestLeaseAfterClose: a second Close does nothing, other calls fail with the cause, and the next
// Acquire returns a working copy.
func TestLeaseAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t, "a")
		set := informer.NewSet(pods.Server().Config())
		stop := startSet(t, set)
		lease := acquire(t, set)
		require.NoError(t, lease.WaitSynced(t.Context()))
		a, _ := lease.Snapshot().Get("ns/a")
		closed := make(chan struct{}, 2)
		for range 2 {
			go func() { lease.Close(); closed <- struct{}{} }()
		}
		<-closed
		<-closed
		_, err := lease.AddHandler(func(podEvent) {})
		require.EqualError(t, err, "informer: add a handler: the lease is closed")
		future := a.DeepCopy()
		future.ResourceVersion = "999999"
		require.ErrorIs(t, lease.WaitFor(t.Context(), future), informer.ErrStopped)
		require.NoError(t, lease.Err())
		require.Empty(t, set.Status())

		again := acquire(t, set)
		require.NoError(t, again.WaitSynced(t.Context()))
		require.NoError(t, again.Ready(time.Minute))
		require.NotSame(t, lease, again)
		again.Close()
		require.NoError(t, stop())
		_, err = informer.Acquire[corev1.Pod](set, podsResource)
		require.EqualError(t, err, "informer: acquire pods/v1 as *v1.Pod: the informer has stopped")
	})
}
