package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// informed is an informer of either library over pods, as the tables of informers need it. What it
// does to an object is the same in both: a handler gets the pod, a reader touches each pod that it
// finds.
type informed interface {
	run(ctx context.Context) error
	// add adds a handler of objects that are new or changed.
	add(handle func(*corev1.Pod)) (remove func(), err error)
	waitSynced(ctx context.Context) error
	byNode(node string) (found int)
	list() (found int)
}

// newInformed makes an informer of a library, with an index by node or without.
func newInformed(library string, f *feed, indexes int) (informed, error) {
	switch library {
	case "tributary":
		return ourInformer{informer.New[*corev1.Pod](f, informer.WithIndexes([]store.AnyIndex[*corev1.Pod]{byNode}[:indexes]...))}, nil
	case "client-go":
		declared := cache.Indexers{}
		if indexes > 0 {
			declared["node"] = func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }
		}
		return theirInformer{cache.NewSharedIndexInformer(listwatch.ToClientGo(f, listwatch.ReadOnly()), &corev1.Pod{}, 0, declared)}, nil
	}
	return nil, fmt.Errorf("no informer of %q", library)
}

type ourInformer struct {
	*informer.Informer[*corev1.Pod]
}

func (o ourInformer) run(ctx context.Context) error        { return o.Run(ctx) }
func (o ourInformer) waitSynced(ctx context.Context) error { return o.WaitSynced(ctx) }

func (o ourInformer) add(handle func(*corev1.Pod)) (func(), error) {
	h, err := o.AddHandler(func(e informer.Event[*corev1.Pod]) { handle(e.Object()) })
	if err != nil {
		return nil, err
	}
	return h.Remove, nil
}

func (o ourInformer) byNode(node string) (found int) {
	for pod := range byNode.Objects(o.Snapshot(), node) {
		found += touch(pod)
	}
	return found
}

func (o ourInformer) list() (found int) {
	for _, pod := range o.Snapshot().All() {
		found += touch(pod)
	}
	return found
}

type theirInformer struct{ cache.SharedIndexInformer }

func (t theirInformer) run(ctx context.Context) error { t.RunWithContext(ctx); return nil }

func (t theirInformer) waitSynced(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), t.HasSynced) {
		return errors.New("client-go's informer did not sync")
	}
	return nil
}

func (t theirInformer) add(handle func(*corev1.Pod)) (func(), error) {
	h, err := t.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { handle(obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { handle(obj.(*corev1.Pod)) },
	})
	if err != nil {
		return nil, err
	}
	return func() { _ = t.RemoveEventHandler(h) }, nil
}

func (t theirInformer) byNode(node string) (found int) {
	objs, _ := t.GetIndexer().ByIndex("node", node)
	for _, obj := range objs {
		found += touch(obj.(*corev1.Pod))
	}
	return found
}

func (t theirInformer) list() (found int) {
	for _, obj := range t.GetIndexer().List() {
		found += touch(obj.(*corev1.Pod))
	}
	return found
}

// touch reads the pod itself, as any user of it would.
func touch(p *corev1.Pod) int {
	if p.Name != "" {
		return 1
	}
	return 0
}

// launch runs an informer that has synced, with handlers that were there from the beginning.
func launch(ctx context.Context, library string, f *feed, indexes int, handlers ...func(*corev1.Pod)) (i informed, stop func(), err error) {
	if i, err = newInformed(library, f, indexes); err != nil {
		return nil, nil, err
	}
	for _, handle := range handlers {
		if _, err := i.add(handle); err != nil {
			return nil, nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = i.run(ctx) })
	stop = func() { cancel(); running.Wait() }
	if err := i.waitSynced(ctx); err != nil {
		stop()
		return nil, nil, err
	}
	return i, stop, nil
}
