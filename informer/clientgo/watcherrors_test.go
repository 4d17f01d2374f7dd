package clientgo_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestWatchErrorHandler: the handler is told of a refusal with a real reflector, which client-go's
// own handler can log, in each way of setting it. A server without watch lists is no error.
func TestWatchErrorHandler(t *testing.T) {
	var logged []string
	before := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, fields ...any) {
		logged = append(logged, err.Error())
		require.Contains(t, fields, "*v1.Pod", "client-go's handler names the reflector's type")
		require.Contains(t, fields, "tributary: *v1.Pod", "and its name")
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
				pods := listwatchtest.New(t, listwatchtest.Pods())
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
		pods := listwatchtest.New(t, listwatchtest.Pods())
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

// TestWatchErrorsLikeClientGo: the handler gets the context of RunWithContext, and is told of a
// refused watch, but not of what client-go's reflector retries by itself.
func TestWatchErrorsLikeClientGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Create(onNode("ns", "a", "n1"))
		pods.NoWatchList(listwatchtest.UntilLifted())
		shared := clientgo.NewInformer(listwatch.ToClientGo(pods.ListerWatcher()), &corev1.Pod{}, 0, cache.Indexers{})
		type mark struct{}
		var told []error
		require.NoError(t, shared.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
			require.Equal(t, "run's", ctx.Value(mark{}))
			told = append(told, err)
		}))
		running(t, func(ctx context.Context) { shared.RunWithContext(context.WithValue(ctx, mark{}, "run's")) })
		pods.Server().AwaitWatches(1)
		pods.Disconnect()
		time.Sleep(time.Minute)
		pods.Expire()
		time.Sleep(time.Minute)
		busy := pods.Fail(listwatchtest.Watch, apierrors.NewTooManyRequests("busy", 1), listwatchtest.UntilLifted())
		pods.Disconnect()
		time.Sleep(time.Minute)
		busy.Lift()
		time.Sleep(time.Minute)
		require.Empty(t, told)
		refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
		pods.Fail(listwatchtest.Watch, refusal, listwatchtest.UntilLifted())
		pods.Disconnect()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.NotEmpty(t, told)
		require.True(t, apierrors.IsForbidden(told[0]))
	})
}

// TestABrokenListIsTold: a list that fails after some of its items is a failed list.
func TestABrokenListIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Create(onNode("ns", "a", "n1"))
		broken := errors.New("broken")
		pods.NoWatchList(listwatchtest.UntilLifted())
		source := listwatch.Intercept(pods.ListerWatcher(),
			func(_ metav1.ListOptions, list listwatch.List[*corev1.Pod]) listwatch.List[*corev1.Pod] {
				items := list.Items
				list.Items = func(yield func(*corev1.Pod, error) bool) {
					for pod, err := range items {
						if !yield(pod, err) {
							return
						}
					}
					yield(nil, broken)
				}
				return list
			}, nil)
		var told []error
		handle := func(_ context.Context, _ *cache.Reflector, err error) { told = append(told, err) }
		shared := clientgo.Informer(informer.New(clientgo.WithWatchErrors(source, &corev1.Pod{}, handle)))
		running(t, shared.RunWithContext)
		synctest.Wait()
		require.Equal(t, []error{broken}, told)
	})
}

// TestPanicBesideABlockedHandler: Run panics at once, though another handler is blocked.
func TestPanicBesideABlockedHandler(t *testing.T) {
	before := utilruntime.ErrorHandlers // they compare the bubble's time with the last error's
	utilruntime.ErrorHandlers = nil
	defer func() { utilruntime.ErrorHandlers = before }()
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Create(onNode("ns", "a", "n1"))
		shared := clientgo.Informer(informer.New(pods.ListerWatcher()))
		goOn := make(chan struct{})
		for _, handle := range []func(any){func(any) { <-goOn }, func(any) { panic("oh") }} {
			_, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: handle})
			require.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.PanicsWithValue(t, "oh", func() { shared.RunWithContext(ctx) })
		require.NoError(t, ctx.Err())
		close(goOn)
		synctest.Wait()
		require.True(t, shared.IsStopped())
	})
}

// TestResyncPeriods: as in client-go, a negative period means none, and one below a second means a
// second.
func TestResyncPeriods(t *testing.T) {
	for period, want := range map[time.Duration]int{-time.Second: 0, 0: 0, time.Millisecond: 60, 20 * time.Second: 3} {
		t.Run(period.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				pods.Create(onNode("ns", "a", "n1"))
				shared := clientgo.NewInformer(listwatch.ToClientGo(pods.ListerWatcher()), &corev1.Pod{}, period, cache.Indexers{})
				updates := 0
				_, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) { updates++ }})
				require.NoError(t, err)
				running(t, shared.RunWithContext)
				pods.Server().AwaitWatches(1)
				synctest.Wait()
				time.Sleep(time.Minute + 10*time.Millisecond)
				synctest.Wait()
				require.Equal(t, want, updates)
			})
		})
	}
}
