package main

import (
	"context"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// handling is the part of each event that a handler of an informer reads.
type handling string

const (
	byKey      handling = "key"
	byMetadata handling = "metadata" // the labels of the new object
	wholly     handling = "whole"    // the objects before and after
)

// seen counts, so that no read is for nothing.
type seen struct{ count atomic.Int64 }

func (s *seen) labels(obj metav1.Object) { s.count.Add(int64(len(obj.GetLabels()))) }

func (s *seen) both(before, after metav1.Object) {
	s.count.Add(int64(len(after.GetName())))
	if before != nil {
		s.count.Add(int64(len(before.GetName())))
	}
}

// handled is our copy with a handler.
type handled[T store.Object] struct {
	*informer.Informer[T]
	handler *informer.Handler[T]
	seen    seen
}

func newHandled[T store.Object](source *listwatch.ListWatch[T], isAtRest bool, how handling, newStore func(...store.AnyIndex[T]) *packed.Store[T]) *handled[T] {
	var options []informer.Option
	if isAtRest {
		options = append(options, informer.WithStore(newStore))
	}
	h := &handled[T]{Informer: informer.New(source, options...)}
	var err error
	switch how {
	case byKey:
		h.handler, err = h.AddMetaHandler(func(e informer.Event[store.Object]) { h.seen.count.Add(int64(len(e.Key))) })
	case byMetadata:
		h.handler, err = h.AddMetaHandler(func(e informer.Event[store.Object]) { h.seen.labels(e.Object()) })
	default:
		h.handler, err = h.AddHandler(func(e informer.Event[T]) {
			if e.Type == informer.Updated {
				h.seen.both(e.Old, e.New)
			}
		})
	}
	if err != nil {
		panic(err) // it does not run yet
	}
	return h
}

func (h *handled[T]) run(ctx context.Context) { _ = h.Run(ctx) }
func (h *handled[T]) len() int                { return h.Snapshot().Len() }
func (h *handled[T]) shared() float64         { return 0 }

// version is empty until the handler is told all of it.
func (h *handled[T]) version() string {
	version := h.Snapshot().ResourceVersion()
	if !h.handler.CaughtUp() {
		return ""
	}
	return version
}

// clientGoHandled is client-go's copy with a handler.
type clientGoHandled struct {
	clientGoInformer
	synced func() bool
	told   atomic.Pointer[string] // the version of the last update
	seen   seen
}

func newClientGoHandled(i cache.SharedIndexInformer, how handling) (*clientGoHandled, error) {
	h := &clientGoHandled{clientGoInformer: clientGoInformer{i}}
	first := world.Version(firstVersion)
	h.told.Store(&first)
	handle := func(before, after any) {
		obj := after.(metav1.Object)
		switch how {
		case byKey:
			key, _ := cache.MetaNamespaceKeyFunc(after)
			h.seen.count.Add(int64(len(key)))
		case byMetadata:
			h.seen.labels(obj)
		default:
			old, _ := before.(metav1.Object)
			h.seen.both(old, obj)
		}
	}
	handler, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { handle(nil, obj) },
		UpdateFunc: func(before, after any) {
			handle(before, after)
			version := after.(metav1.Object).GetResourceVersion()
			h.told.Store(&version)
		},
	})
	if err == nil {
		h.synced = handler.HasSynced
	}
	return h, err
}

func (h *clientGoHandled) version() string {
	if !h.synced() {
		return ""
	}
	return *h.told.Load()
}
