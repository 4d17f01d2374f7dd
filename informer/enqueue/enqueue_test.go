package enqueue_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/enqueue"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

func onNode(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
}

// TestKeys follows a pod that moves: both its old and its new node are enqueued.
func TestKeys(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	events := informer.New(pods.ListerWatcher())
	h, err := events.AddHandler(enqueue.Keys(queue, func(p *corev1.Pod) []string {
		if p.Spec.NodeName == "" {
			return nil
		}
		return []string{p.Spec.NodeName, p.Spec.NodeName}
	}))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- events.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()
	require.NoError(t, h.WaitSynced(t.Context()))

	next := func() string {
		key, _ := queue.Get()
		queue.Done(key)
		return key
	}
	pods.Create(onNode("pending", ""))
	a := pods.Create(onNode("a", "n1"))
	require.Equal(t, "n1", next())
	a = a.DeepCopy()
	a.Spec.NodeName = "n2"
	pods.Update(a)
	require.ElementsMatch(t, []string{"n1", "n2"}, []string{next(), next()})
	pods.Remove(a)
	require.Equal(t, "n2", next())
	require.NoError(t, events.WaitForDeletion(t.Context(), a))
	h.Remove()
	require.Zero(t, queue.Len(), "each key once")
}

// TestKeysOfALateDeletion: a handler that is behind is told a deletion with a state that it was not
// told before. The node that it was told of before is enqueued too.
func TestKeysOfALateDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		queue := workqueue.NewTyped[string]()
		defer queue.ShutDown()
		enqueued := enqueue.Keys(queue, func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
		busy := make(chan struct{})
		var deletion informer.Event[*corev1.Pod]
		events := informer.New(pods.ListerWatcher(), informer.WithRing(1))
		a, b := pods.Create(onNode("a", "n1")), pods.Create(onNode("b", "n0"))
		_, err := events.AddHandler(func(e informer.Event[*corev1.Pod]) {
			if e.Type == informer.Updated {
				<-busy
			} else if e.Type == informer.Deleted {
				deletion = e
			}
			enqueued(e)
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = events.Run(ctx) }()
		drain := func() (keys []string) {
			synctest.Wait()
			for queue.Len() > 0 {
				key, _ := queue.Get()
				queue.Done(key)
				keys = append(keys, key)
			}
			return keys
		}
		require.ElementsMatch(t, []string{"n0", "n1"}, drain())
		move := func(p *corev1.Pod, node string) *corev1.Pod {
			p = p.DeepCopy()
			p.Spec.NodeName = node
			return pods.Update(p)
		}
		move(b, "n3") // its handler does not return
		synctest.Wait()
		pods.Remove(move(a, "n2"))
		synctest.Wait()
		close(busy)
		require.ElementsMatch(t, []string{"n0", "n1", "n2", "n3"}, drain())
		require.True(t, deletion.Final)
		require.Equal(t, "n2", deletion.Old.Spec.NodeName, "the handler was not told of this state")
		pods.Create(onNode("a", "n4"))
		require.Equal(t, []string{"n4"}, drain(), "the former keys are forgotten")
	})
}

// TestKeysOfNothing: what is missing is a mistake in the program.
func TestKeysOfNothing(t *testing.T) {
	queue := workqueue.NewTyped[string]()
	defer queue.ShutDown()
	require.PanicsWithValue(t, "enqueue: Keys: the function that returns the keys is nil", func() {
		enqueue.Keys[*corev1.Pod](queue, nil)
	})
	require.PanicsWithValue(t, "enqueue: Keys: the queue is nil", func() {
		enqueue.Keys[*corev1.Pod, string](nil, func(*corev1.Pod) []string { return nil })
	})
}

func TestOwnerAndLabel(t *testing.T) {
	yes := true
	obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "a", Labels: map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "not its controller"},
			{APIVersion: "apps/v1beta2", Kind: "ReplicaSet", Name: "web-1", Controller: &yes},
		},
	}}
	none := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	for kind, want := range map[schema.GroupKind][]string{
		{Group: "apps", Kind: "ReplicaSet"}:        {"ns/web-1"},
		{Group: "apps", Kind: "StatefulSet"}:       nil,
		{Group: "example.com", Kind: "ReplicaSet"}: nil,
	} {
		require.Equal(t, want, enqueue.Owner[*corev1.Pod](kind)(obj))
		require.Nil(t, enqueue.Owner[*corev1.Pod](kind)(none))
	}
	require.Equal(t, []string{"ns/web"}, enqueue.Label[*corev1.Pod]("app")(obj))
	require.Nil(t, enqueue.Label[*corev1.Pod]("app")(none))
}
