package clientgo_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/watchcache"
)

// TestEnqueue follows a pod that moves: both its old and its new node are enqueued.
func TestEnqueue(t *testing.T) {
	pods := listwatchtest.New(t, watchcache.Pods())
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	events := informer.New(pods.ListerWatcher())
	h, err := events.AddHandler(clientgo.Enqueue(queue, func(p *corev1.Pod) []string {
		if p.Spec.NodeName == "" {
			return nil
		}
		return []string{p.Spec.NodeName, p.Spec.NodeName}
	}))
	require.NoError(t, err)
	running(t, noError(t, events.Run))
	require.NoError(t, h.WaitSynced(t.Context()))

	next := func() (keys []string) {
		key, _ := queue.Get()
		queue.Done(key)
		return append(keys, key)
	}
	pods.Create(onNode("ns", "pending", ""))
	a := pods.Create(onNode("ns", "a", "n1"))
	require.Equal(t, []string{"n1"}, next())
	a = a.DeepCopy()
	a.Spec.NodeName = "n2"
	pods.Update(a)
	require.ElementsMatch(t, []string{"n1", "n2"}, append(next(), next()...))
	pods.Remove(a)
	require.Equal(t, []string{"n2"}, next())
	require.NoError(t, events.WaitForDeletion(t.Context(), a))
	h.Remove()
	require.Zero(t, queue.Len(), "each key once")
}
