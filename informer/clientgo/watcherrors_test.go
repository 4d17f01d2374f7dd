package clientgo_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/watchcache"
)

// TestWatchErrorHandler: the handler is told of a refusal with a real reflector, which client-go's
// own handler can log, in each way of setting it. A server without watch lists is no error.
func TestWatchErrorHandler(t *testing.T) {
	var logged []string
	before := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, fields ...any) {
		logged = append(logged, err.Error())
		require.Contains(t, fields, "*v1.Pod", "client-go's handler names the reflector's type")
	}}
	defer func() { utilruntime.ErrorHandlers = before }()
	for name, newInformer := range map[string]func(*fakePods, cache.WatchErrorHandlerWithContext) cache.SharedIndexInformer{
		"SetWatchErrorHandlerWithContext": func(pods *fakePods, handle cache.WatchErrorHandlerWithContext) cache.SharedIndexInformer {
			shared := clientgo.NewInformer(listwatch.ToClientGo(pods.ListerWatcher()), &corev1.Pod{}, 0, cache.Indexers{})
			require.NoError(t, shared.SetWatchErrorHandlerWithContext(handle))
			return shared
		},
		"SetWatchErrorHandler": func(pods *fakePods, handle cache.WatchErrorHandlerWithContext) cache.SharedIndexInformer {
			shared := clientgo.NewInformer(listwatch.ToClientGo(pods.ListerWatcher()), &corev1.Pod{}, 0, cache.Indexers{})
			require.NoError(t, shared.SetWatchErrorHandler(func(r *cache.Reflector, err error) { handle(context.Background(), r, err) }))
			return shared
		},
		"WithWatchErrors": func(pods *fakePods, handle cache.WatchErrorHandlerWithContext) cache.SharedIndexInformer {
			source := clientgo.WithWatchErrors[*corev1.Pod](pods.ListerWatcher(), &corev1.Pod{}, handle)
			return clientgo.Informer(informer.New(source))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logged = nil
				pods := listwatchtest.New(t, watchcache.Pods())
				pods.Create(onNode("ns", "a", "n1"))
				pods.NoWatchList(listwatchtest.UntilLifted())
				told := 0
				shared := newInformer(pods, func(ctx context.Context, r *cache.Reflector, err error) {
					told++
					cache.DefaultWatchErrorHandler(ctx, r, err)
				})
				refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
				refused := pods.Fail(listwatchtest.List, refusal, listwatchtest.UntilLifted())
				running(t, shared.RunWithContext)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Positive(t, told)
				require.Contains(t, logged[0], "forbidden")
				refused.Lift()
				time.Sleep(time.Minute)
				synctest.Wait()
				require.True(t, shared.HasSynced())
				last := told
				pods.Create(onNode("ns", "b", "n1"))
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, last, told, "nothing has failed since")
				require.Len(t, shared.GetStore().List(), 2)
			})
		})
	}
}

// TestReallyCrash: a program that lives on after panics loses the event alone, and its handler
// rests for a second. A removal and the end of the informer need not wait for it.
func TestReallyCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crash := utilruntime.ReallyCrash
		utilruntime.ReallyCrash = false
		defer func() { utilruntime.ReallyCrash = crash }()
		pods := listwatchtest.New(t, watchcache.Pods())
		pods.Create(onNode("ns", "a", "n1"))
		shared := clientgo.Informer(informer.New(pods.ListerWatcher()))
		added := &transcript{}
		handle, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
			added.note("%s", obj.(*corev1.Pod).Name)
			panic("at each event")
		}})
		require.NoError(t, err)
		stop := running(t, shared.RunWithContext)
		pods.Server().AwaitWatches(1)
		pods.Create(onNode("ns", "b", "n1"))
		synctest.Wait()
		require.Equal(t, []string{"a"}, added.take())
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []string{"b"}, added.take())
		require.False(t, shared.IsStopped())

		_, err = shared.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic("twice") }})
		require.NoError(t, err)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, shared.RemoveEventHandler(handle))
		awaitRemoved(handle)
		stop()
		require.Zero(t, time.Since(began))
	})
}
