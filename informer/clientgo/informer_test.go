package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

type fakePods = listwatchtest.Collection[*corev1.Pod]

// transcript records a handler's calls, one line per call.
type transcript struct {
	mu    sync.Mutex
	lines []string
}

func (l *transcript) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// take returns the lines since its last call.
func (l *transcript) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

func (l *transcript) OnAdd(obj any, initial bool) {
	l.note("add %s initial=%t", describe(obj), initial)
}
func (l *transcript) OnUpdate(old, obj any) { l.note("update %s to %s", describe(old), describe(obj)) }
func (l *transcript) OnDelete(obj any)      { l.note("delete %s", describe(obj)) }

func describe(obj any) string {
	switch o := obj.(type) {
	case cache.DeletedFinalStateUnknown:
		return "tombstone " + o.Key + " of " + describe(o.Obj)
	case *corev1.Pod:
		return fmt.Sprintf("%s@%s", o.Name, o.ResourceVersion)
	}
	return fmt.Sprintf("a %T", obj)
}

// implementations are client-go's informer, and ours made in two ways.
var implementations = map[string]func(*fakePods) cache.SharedIndexInformer{
	"client-go": func(pods *fakePods) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(listwatch.ToClientGo(pods.ListerWatcher()), &corev1.Pod{}, 0, cache.Indexers{"node": byNode})
	},
	"NewInformer": func(pods *fakePods) cache.SharedIndexInformer {
		return clientgo.NewInformer(listwatch.ToClientGo(pods.ListerWatcher()), &corev1.Pod{}, 0, cache.Indexers{"node": byNode})
	},
	"Union": func(pods *fakePods) cache.SharedIndexInformer {
		union := informer.NewUnion[*corev1.Pod]()
		if _, err := union.Add("all", pods.ListerWatcher()); err != nil {
			panic(err)
		}
		shared := clientgo.Union(union)
		if err := shared.AddIndexers(cache.Indexers{"node": byNode}); err != nil {
			panic(err)
		}
		return shared
	},
	"Informer": func(pods *fakePods) cache.SharedIndexInformer {
		shared := clientgo.Informer(informer.New(pods.ListerWatcher()))
		if err := shared.AddIndexers(cache.Indexers{"node": byNode}); err != nil {
			panic(err)
		}
		return shared
	},
}

// TestSharedIndexInformer runs each implementation through one story: their handlers must be told
// the same.
func TestSharedIndexInformer(t *testing.T) {
	for name, newInformer := range implementations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				a := pods.Create(onNode("ns", "a", "n1"))
				shared := newInformer(pods)
				early, late, again := &transcript{}, &transcript{}, &transcript{}
				told := func(l *transcript, want ...string) {
					t.Helper()
					// Simulated time: client-go may be waiting for a retry.
					time.Sleep(time.Minute)
					synctest.Wait()
					require.Equal(t, want, l.take())
				}
				first, err := shared.AddEventHandler(early)
				require.NoError(t, err)
				require.False(t, shared.HasSynced() || first.HasSynced() || shared.IsStopped())
				require.Empty(t, shared.LastSyncResourceVersion())

				stop := running(t, shared.RunWithContext)
				synced(t, shared)
				synced(t, first)
				require.True(t, cache.WaitForCacheSync(t.Context().Done(), shared.HasSynced, first.HasSynced, shared.GetController().HasSynced))
				told(early, "add a@2 initial=true")

				b := pods.Create(onNode("ns", "b", "n1"))
				told(early, "add b@3 initial=false")
				_, err = shared.AddEventHandlerWithResyncPeriod(late, 0)
				require.NoError(t, err)
				synctest.Wait()
				require.Len(t, late.take(), 2)
				pods.Remove(b)
				told(early, "delete b@4")
				told(late, "delete b@4")

				a = a.DeepCopy()
				a.Labels["changed"] = "yes"
				a = pods.Update(a)
				told(early, "update a@2 to a@5")
				told(late, "update a@2 to a@5")
				every := time.Hour
				_, err = shared.AddEventHandlerWithOptions(again, cache.HandlerOptions{ResyncPeriod: &every})
				require.NoError(t, err)
				told(again, "add a@5 initial=true")

				found, err := shared.GetIndexer().ByIndex("node", "n1")
				require.NoError(t, err)
				require.Equal(t, []any{a}, found)
				require.Equal(t, []string{"ns/a"}, shared.GetStore().ListKeys())
				require.Equal(t, "5", shared.LastSyncResourceVersion())

				// A deletion while there is no watch is inferred from a list.
				down := apierrors.NewServiceUnavailable("not now")
				noWatch := pods.Fail(listwatchtest.Watch, down, listwatchtest.UntilLifted())
				noList := pods.Fail(listwatchtest.List, down, listwatchtest.UntilLifted())
				pods.Disconnect()
				pods.Remove(a)
				pods.Expire()
				noWatch.Lift()
				noList.Lift()
				pods.Server().AwaitWatches(1)
				told(early, "delete tombstone ns/a of a@5")
				told(late, "delete tombstone ns/a of a@5")

				require.NoError(t, shared.RemoveEventHandler(first))
				require.NoError(t, shared.RemoveEventHandler(first), "twice")
				awaitRemoved(first)
				c := pods.Create(onNode("ns", "c", "n2"))
				told(late, "add "+describe(c)+" initial=false")
				told(early)
				stop()
				require.True(t, shared.IsStopped())
				_, err = shared.AddEventHandler(early)
				require.Error(t, err)
			})
		})
	}
}

// TestWrittenByHand: a test may write the store of an informer that it does not start. Once the
// server's content is there, it replaces all of that, and no handler has heard of it.
func TestWrittenByHand(t *testing.T) {
	for name, newInformer := range implementations {
		if name == "client-go" {
			continue // its handlers are told of a deletion
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				shared := newInformer(pods)
				lister := listers.NewPodLister(shared.GetIndexer())
				l := &transcript{}
				_, err := shared.AddEventHandler(l)
				require.NoError(t, err)
				a, b := onNode("ns", "a", "n1"), onNode("ns", "b", "n2")
				require.NoError(t, shared.GetIndexer().Add(a))
				require.NoError(t, shared.GetStore().Update(b))
				got, err := lister.Pods("ns").Get("a")
				require.NoError(t, err)
				require.Same(t, a, got)
				found, err := shared.GetIndexer().ByIndex("node", "n2")
				require.NoError(t, err)
				require.Equal(t, []any{b}, found)
				require.NoError(t, shared.GetIndexer().Delete(cache.DeletedFinalStateUnknown{Key: "ns/b", Obj: b}))
				require.Equal(t, []string{"ns/a"}, shared.GetStore().ListKeys())
				require.NoError(t, shared.GetStore().Replace([]any{b}, "7"))
				require.Equal(t, []any{b}, shared.GetStore().List())
				require.Equal(t, "7", shared.GetStore().(versioned).LastStoreSyncResourceVersion())
				require.False(t, shared.HasSynced())
				require.Empty(t, shared.LastSyncResourceVersion())

				c := pods.Create(onNode("ns", "c", "n2"))
				running(t, shared.RunWithContext)
				synced(t, shared)
				synctest.Wait()
				require.Equal(t, []string{"ns/c"}, shared.GetStore().ListKeys())
				found, err = shared.GetIndexer().ByIndex("node", "n2")
				require.NoError(t, err)
				require.Len(t, found, 1)
				require.Equal(t, []string{"add " + describe(c) + " initial=true"}, l.take())
			})
		})
	}
}

// TestWrittenByHandLater: the store of an informer that has synced can be written too. In each
// implementation a write lasts until the key's next event, or the next list.
func TestWrittenByHandLater(t *testing.T) {
	for name, newInformer := range implementations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				a, b := pods.Create(onNode("ns", "a", "n1")), pods.Create(onNode("ns", "b", "n1"))
				shared := newInformer(pods)
				running(t, shared.RunWithContext)
				synced(t, shared)
				synctest.Wait()
				indexer := shared.GetIndexer()
				requireNodes := func(want map[string]string) {
					t.Helper()
					nodes := map[string]string{}
					for _, node := range indexer.ListIndexFuncValues("node") {
						found, err := indexer.ByIndex("node", node)
						require.NoError(t, err)
						for _, obj := range found {
							nodes[obj.(*corev1.Pod).Name] = node
						}
					}
					require.Equal(t, want, nodes)
					require.Len(t, indexer.List(), len(want))
				}

				mine := onNode("ns", "mine", "n2")
				require.NoError(t, indexer.Add(mine))
				require.NoError(t, indexer.Update(onNode("ns", "a", "n2")))
				require.NoError(t, indexer.Delete(b))
				requireNodes(map[string]string{"mine": "n2", "a": "n2"})
				got, err := listers.NewPodLister(indexer).Pods("ns").Get("mine")
				require.NoError(t, err)
				require.Same(t, mine, got)

				pods.Create(onNode("ns", "c", "n1"))
				synctest.Wait()
				requireNodes(map[string]string{"mine": "n2", "a": "n2", "c": "n1"})
				for _, held := range []*corev1.Pod{a, b} {
					touched := held.DeepCopy()
					touched.Labels = map[string]string{"touched": "yes"}
					pods.Update(touched)
				}
				synctest.Wait()
				requireNodes(map[string]string{"mine": "n2", "a": "n1", "b": "n1", "c": "n1"})

				require.NoError(t, indexer.Replace([]any{mine}, "9"))
				requireNodes(map[string]string{"mine": "n2"})
				require.NotEqual(t, "9", shared.LastSyncResourceVersion(), "the informer has its own")
				pods.Remove(a)
				synctest.Wait()
				requireNodes(map[string]string{"mine": "n2"})
				pods.Expire()
				pods.Disconnect()
				time.Sleep(time.Minute) // until it has listed again
				synctest.Wait()
				requireNodes(map[string]string{"b": "n1", "c": "n1"})
			})
		})
	}
}

// TestHandlerRemovesItself: a handler may remove itself, as in client-go.
func TestHandlerRemovesItself(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	pods.Create(onNode("ns", "a", "n1"))
	shared := clientgo.Informer(informer.New(pods.ListerWatcher()))
	var registered cache.ResourceEventHandlerRegistration
	removed := make(chan error, 1)
	registered, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		removed <- shared.RemoveEventHandler(registered)
	}})
	require.NoError(t, err)
	running(t, shared.RunWithContext)
	require.NoError(t, <-removed)
	awaitRemoved(registered)
}

// awaitRemoved is cache.ShutDownEventHandler, for client-go's own informers since 0.37 only.
func awaitRemoved(registered cache.ResourceEventHandlerRegistration) {
	if r, ok := registered.(interface{ ShutdownChan() <-chan struct{} }); ok {
		<-r.ShutdownChan()
	}
}

// TestRemovedAtOnce: RemoveEventHandler drops the handler before it returns, even one that is at
// work.
func TestRemovedAtOnce(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	pods.Create(onNode("ns", "a", "n1"))
	shared := clientgo.NewInformer(listwatch.ToClientGo(pods.ListerWatcher()), &corev1.Pod{}, 0, nil)
	atWork, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	registered, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { close(atWork); <-goOn }})
	require.NoError(t, err)
	stop := running(t, shared.RunWithContext)
	defer release()
	<-atWork
	status := shared.(interface{ Status() informer.Status }).Status
	require.Len(t, status().Handlers, 1)
	require.NoError(t, shared.RemoveEventHandler(registered))
	require.Empty(t, status().Handlers)
	release()
	awaitRemoved(registered)
	stop()
	_, err = shared.AddEventHandler(&transcript{})
	require.ErrorIs(t, err, informer.ErrStopped)
	require.ErrorContains(t, err, "has stopped already", "which programs look for")
}

// TestFactory gives a factory of k8s.io/client-go/informers one of our informers, which its listers
// then read.
func TestFactory(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	pods.Create(onNode("ns", "a", "n1"))
	client, err := kubernetes.NewForConfig(pods.Server().Config())
	require.NoError(t, err)
	ours := informer.New(listwatch.FromClient[corev1.Pod](client.CoreV1().RESTClient(), "pods"))
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		return clientgo.Informer(ours)
	})
	lister := factory.Core().V1().Pods().Lister()
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		require.True(t, synced, kind)
	}
	all, err := lister.Pods("ns").List(labels.Everything())
	require.NoError(t, err)
	require.Len(t, all, 1)
	held, ok := ours.Snapshot().Get("ns/a")
	require.True(t, ok)
	require.True(t, all[0] == held)
}

func TestTransform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Create(onNode("ns", "a", "n1"))
		shared := clientgo.NewInformer(listwatch.ToClientGo(pods.ListerWatcher()), &corev1.Pod{}, 0, cache.Indexers{})
		require.NoError(t, shared.SetTransform(nil))
		require.NoError(t, shared.SetTransform(func(obj any) (any, error) {
			pod := obj.(*corev1.Pod).DeepCopy()
			switch pod.Name {
			case "refused":
				return nil, errors.New("not this one")
			case "other":
				return "a string", nil
			}
			pod.Labels = nil
			return pod, nil
		}))
		running(t, shared.RunWithContext)
		pods.Server().AwaitWatches(1)
		pods.Create(onNode("ns", "refused", "n1"))
		pods.Create(onNode("ns", "other", "n1"))
		pods.Create(onNode("ns", "b", "n1"))
		synctest.Wait()
		require.ElementsMatch(t, []string{"ns/a", "ns/b"}, shared.GetStore().ListKeys())
		for _, obj := range shared.GetStore().List() {
			require.Empty(t, obj.(*corev1.Pod).Labels)
		}
		require.ErrorContains(t, shared.SetTransform(nil), "the informer has already started", "which programs look for")
	})
}

// TestAnotherTypeIsRefused: an object of another type must not reach a lister, which would panic.
func TestAnotherTypeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Create(onNode("ns", "a", "n1"))
		lw := listwatch.ToClientGo(pods.ListerWatcher())
		nodes := clientgo.NewInformer(lw, &corev1.Node{}, 0, cache.Indexers{})
		anything := clientgo.NewInformer(lw, nil, 0, cache.Indexers{})
		running(t, nodes.RunWithContext)
		running(t, anything.RunWithContext)
		synctest.Wait()
		require.Empty(t, nodes.GetStore().List())
		require.Len(t, anything.GetStore().List(), 1)
	})
}

func TestInformerErrors(t *testing.T) {
	ours := informer.New(listwatch.FromClientGo[*corev1.Pod](&cache.ListWatch{}))
	shared, other := clientgo.Informer(ours), clientgo.Informer(informer.New(listwatch.FromClientGo[*corev1.Pod](&cache.ListWatch{})))
	foreign, err := other.AddEventHandler(&transcript{})
	require.NoError(t, err)
	require.NoError(t, shared.RemoveEventHandler(foreign), "which client-go allows")
	require.Len(t, other.(interface{ Status() informer.Status }).Status().Handlers, 1)
	_, isNil := shared.AddEventHandler(nil)
	for want, err := range map[string]error{
		"add a handler: the handler is nil":   isNil,
		"the informer already has its source": shared.SetTransform(func(any) (any, error) { return nil, nil }),
		"set a watch error handler":           shared.SetWatchErrorHandler(func(*cache.Reflector, error) {}),
	} {
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, shared.SetTransform(nil), "which controller-runtime does")
	require.PanicsWithError(t, `clientgo: add index "x": its function is nil`, func() {
		clientgo.NewInformer(&cache.ListWatch{}, nil, 0, cache.Indexers{"x": nil})
	})
}

// TestNoListerWatcher: an informer that tests write into, and that reads nothing.
func TestNoListerWatcher(t *testing.T) {
	for name, construct := range map[string]func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer{
		"client-go": cache.NewSharedIndexInformer, "ours": clientgo.NewInformer,
	} {
		t.Run(name, func(t *testing.T) {
			shared := construct(nil, nil, 0, cache.Indexers{})
			require.NoError(t, shared.AddIndexers(cache.Indexers{"node": byNode}))
			_, err := shared.AddEventHandler(&transcript{})
			require.NoError(t, err)
			require.NoError(t, shared.GetStore().Add(onNode("ns", "a", "n1")))
			require.NoError(t, shared.GetIndexer().Update(onNode("ns", "a", "n2")))
			found, err := shared.GetIndexer().ByIndex("node", "n2")
			require.NoError(t, err)
			require.Equal(t, []any{onNode("ns", "a", "n2")}, found)
			require.False(t, shared.HasSynced())
		})
	}
	run := clientgo.NewInformer(nil, nil, 0, nil).RunWithContext
	require.PanicsWithValue(t, "clientgo: Run: the informer was made with a ListerWatcher that is nil", func() { run(t.Context()) })
	content, controller := clientgo.NewIndexerInformer(nil, nil, 0, &transcript{}, nil)
	require.NoError(t, content.Add(onNode("ns", "a", "n1")))
	require.Panics(t, func() { controller.Run(t.Context().Done()) })
}

// TestRunReports: Run reports its error to HandleError, since it cannot return one.
func TestRunReports(t *testing.T) {
	reported := make(chan error, 8)
	before := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...any) { reported <- err }}
	defer func() { utilruntime.ErrorHandlers = before }()
	pods := listwatchtest.New(t, listwatchtest.Pods())
	pods.Create(onNode("ns", "a", "n1"))

	shared := clientgo.Informer(informer.New(pods.ListerWatcher(), informer.WithRing(0)))
	shared.Run(nil)
	require.ErrorContains(t, <-reported, "WithRing(0)")

	shared = clientgo.Informer(informer.New(pods.ListerWatcher()))
	_, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic(http.ErrAbortHandler) }})
	require.NoError(t, err)
	require.Panics(t, func() { shared.Run(nil) })
	require.ErrorIs(t, <-reported, http.ErrAbortHandler)
	require.Eventually(t, shared.IsStopped, time.Minute, time.Millisecond)
}
