package main

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// The libraries of the tables of informers.
const (
	ours     = "tributary"
	clientGo = "client-go"
)

// informed is an informer of pods, ours or client-go's. Handlers and readers do the same in both: a
// handler gets the pod, and a reader touches each pod that it finds.
type informed struct {
	run    func(ctx context.Context)
	synced func(ctx context.Context)
	// add adds a handler of objects that are new or changed.
	add    func(handle func(*corev1.Pod)) (remove func())
	byNode func(node string) (found int)
	list   func() (found int)
}

func ourInformer(from reflectorSource, indexes ...store.AnyIndex[*corev1.Pod]) informed {
	i := informer.New[*corev1.Pod](from, informer.WithIndexes(indexes...))
	return informed{
		run:    func(ctx context.Context) { _ = i.Run(ctx) },
		synced: func(ctx context.Context) { harness.Check(i.WaitSynced(ctx)) },
		add: func(handle func(*corev1.Pod)) func() {
			return harness.Must(i.AddHandler(func(e informer.Event[*corev1.Pod]) { handle(e.Object()) })).Remove
		},
		byNode: func(node string) (found int) {
			for pod := range byNode.Objects(i.Snapshot(), node) {
				found += touch(pod)
			}
			return found
		},
		list: func() (found int) {
			for _, pod := range i.Snapshot().All() {
				found += touch(pod)
			}
			return found
		},
	}
}

// reflectorSource is what an informer of pods reads.
type reflectorSource = listwatch.ListerWatcher[*corev1.Pod]

func theirInformer(from cache.ListerWatcher, indexes cache.Indexers) informed {
	i := cache.NewSharedIndexInformer(from, &corev1.Pod{}, 0, indexes)
	touchAll := func(objs []any) (found int) {
		for _, obj := range objs {
			found += touch(obj.(*corev1.Pod))
		}
		return found
	}
	return informed{
		run: i.RunWithContext,
		synced: func(ctx context.Context) {
			if !cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
				harness.Fail("client-go's informer did not sync")
			}
		},
		add: func(handle func(*corev1.Pod)) func() {
			h := harness.Must(i.AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc:    func(obj any) { handle(obj.(*corev1.Pod)) },
				UpdateFunc: func(_, obj any) { handle(obj.(*corev1.Pod)) },
			}))
			return func() { _ = i.RemoveEventHandler(h) }
		},
		byNode: func(node string) int { return touchAll(harness.Must(i.GetIndexer().ByIndex("node", node))) },
		list:   func() int { return touchAll(i.GetIndexer().List()) },
	}
}

// touch reads the pod itself, as any user of it would.
func touch(p *corev1.Pod) int {
	if p.Name != "" {
		return 1
	}
	return 0
}

// launch runs an informer that has synced, with the first so many of two indexes, and handlers that
// were there from the beginning.
func launch(ctx context.Context, library string, f *feed, indexes int, handlers ...func(*corev1.Pod)) (i informed, stop func()) {
	if library == ours {
		i = ourInformer(f, ourIndexes[:indexes]...)
	} else {
		i = theirInformer(listwatch.ToClientGo(f, listwatch.ReadOnly()), theirIndexes(indexes))
	}
	for _, handle := range handlers {
		i.add(handle)
	}
	return i, i.start(ctx)
}

// start runs an informer, and returns when it has synced.
func (i informed) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { i.run(ctx) })
	i.synced(ctx)
	return func() { cancel(); running.Wait() }
}
