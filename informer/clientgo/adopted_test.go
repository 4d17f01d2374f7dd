package clientgo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestResyncPeriod: client-go's resync is a redelivery.
func TestResyncPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Create(onNode("ns", "a", "n1"))
		lw := listwatch.ToClientGo(pods.ListerWatcher())
		shared := clientgo.NewInformer(lw, &corev1.Pod{}, time.Hour, cache.Indexers{})
		l, none := &transcript{}, &transcript{}
		_, err := shared.AddEventHandler(l)
		require.NoError(t, err)
		_, err = shared.AddEventHandlerWithResyncPeriod(none, 0)
		require.NoError(t, err)
		running(t, shared.RunWithContext)
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"add a@2 initial=true", "update a@2 to a@2"}, l.take())
		require.Equal(t, []string{"add a@2 initial=true"}, none.take())
	})
}

// TestResyncPeriodOfAnInformerWithoutOne: a handler's own period counts for nothing.
func TestResyncPeriodOfAnInformerWithoutOne(t *testing.T) {
	for name, newInformer := range map[string]func(cache.ListerWatcher) cache.SharedIndexInformer{
		"tributary": func(lw cache.ListerWatcher) cache.SharedIndexInformer {
			return clientgo.NewInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
		},
		"client-go": func(lw cache.ListerWatcher) cache.SharedIndexInformer {
			return cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				pods.Create(onNode("ns", "a", "n1"))
				shared, l := newInformer(listwatch.ToClientGo(pods.ListerWatcher())), &transcript{}
				_, err := shared.AddEventHandlerWithResyncPeriod(l, time.Minute)
				require.NoError(t, err)
				running(t, shared.RunWithContext)
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Equal(t, []string{"add a@2 initial=true"}, l.take())
			})
		})
	}
}

// TestTheControllerOfASharedInformerRunsNothing: Kubernetes' garbage collector runs the controllers
// of informers that a factory runs, and ends them by itself.
func TestTheControllerOfASharedInformerRunsNothing(t *testing.T) {
	for name, newInformer := range implementations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				shared := newInformer(pods)
				controller, stop := shared.GetController(), make(chan struct{})
				controller.Run(stop)
				controller.RunWithContext(t.Context())
				require.False(t, controller.HasSynced())
				running(t, shared.RunWithContext)
				synced(t, controller)
				close(stop)
				synctest.Wait()
				pods.Create(onNode("ns", "a", "n1"))
				synctest.Wait()
				require.False(t, shared.IsStopped())
				require.Len(t, shared.GetStore().List(), 1)
			})
		})
	}
}

// TestStatusOf: a wrapper, such as those of client-go 0.37's factories, hides no Status.
func TestStatusOf(t *testing.T) {
	ours := clientgo.NewInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, nil)
	status, ok := clientgo.StatusOf(struct{ cache.SharedIndexInformer }{ours})
	require.True(t, ok)
	require.EqualValues(t, "idle", status.Phase)
	_, ok = clientgo.StatusOf(cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, nil))
	require.False(t, ok)
}
