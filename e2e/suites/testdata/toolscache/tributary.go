package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// What the tests of this package get from the constructors that they call. The external test
// package beside this file sets these before a test runs: this package cannot import what imports
// it.
var (
	NewOurInformer func(lw ListerWatcher, example runtime.Object, options SharedIndexInformerOptions) OurInformer
	NewOurIndexer  func(keyFunc KeyFunc, indexers Indexers) Indexer
	NewOurUndelta  func(push func([]any), keyFunc KeyFunc) Store
)

// OurInformer has what the tests look up in the fields of client-go's informer.
type OurInformer interface {
	SharedIndexInformer
	Started() bool
	Handlers() int
	Registered(ResourceEventHandlerRegistration) bool
}

// The three look-ups of shared_informer_test.go.

func isStarted(i SharedInformer) bool { return ours(i).Started() }

func eventHandlerCount(i SharedInformer) int { return ours(i).Handlers() }

func isRegistered(i SharedInformer, h ResourceEventHandlerRegistration) bool {
	return ours(i).Registered(h)
}

func ours(i SharedInformer) OurInformer {
	return i.(*sharedIndexInformer).SharedIndexInformer.(OurInformer)
}

// NewSharedIndexInformerWithOptions is what the other constructors of shared informers call. The
// result has the type that the tests assert, and all of its methods are ours.
func NewSharedIndexInformerWithOptions(lw ListerWatcher, example runtime.Object, options SharedIndexInformerOptions) SharedIndexInformer {
	informer := clientNewSharedIndexInformerWithOptions(lw, example, options).(*sharedIndexInformer)
	informer.SharedIndexInformer = NewOurInformer(lw, example, options)
	return informer
}

// NewStore is client-go's own if it has options: ours has none of these.
func NewStore(keyFunc KeyFunc, options ...StoreOption) Store {
	if len(options) > 0 {
		return clientNewStore(keyFunc, options...)
	}
	return NewOurIndexer(keyFunc, Indexers{})
}

func NewIndexer(keyFunc KeyFunc, indexers Indexers, options ...StoreOption) Indexer {
	if len(options) > 0 {
		return clientNewIndexer(keyFunc, indexers, options...)
	}
	return NewOurIndexer(keyFunc, indexers)
}

func NewUndeltaStore(push func([]any), keyFunc KeyFunc) *UndeltaStore {
	return &UndeltaStore{Store: NewOurUndelta(push, keyFunc), PushFunc: push}
}

func NewInformerWithOptions(o InformerOptions) (Store, Controller) {
	informer := NewOurInformer(o.ListerWatcher, o.ObjectType, SharedIndexInformerOptions{ResyncPeriod: o.ResyncPeriod, Indexers: o.Indexers})
	if err := informer.SetTransform(o.Transform); err != nil {
		panic(err)
	}
	if _, err := informer.AddEventHandler(o.Handler); err != nil {
		panic(err)
	}
	return informer.GetIndexer(), informer
}

func NewInformer(lw ListerWatcher, example runtime.Object, resync time.Duration, h ResourceEventHandler) (Store, Controller) {
	return NewTransformingInformer(lw, example, resync, h, nil)
}

func NewIndexerInformer(lw ListerWatcher, example runtime.Object, resync time.Duration, h ResourceEventHandler, indexers Indexers) (Indexer, Controller) {
	return NewTransformingIndexerInformer(lw, example, resync, h, indexers, nil)
}

func NewTransformingInformer(
	lw ListerWatcher, example runtime.Object, resync time.Duration, h ResourceEventHandler, transform TransformFunc,
) (Store, Controller) {
	return NewTransformingIndexerInformer(lw, example, resync, h, Indexers{}, transform)
}

func NewTransformingIndexerInformer(
	lw ListerWatcher, example runtime.Object, resync time.Duration, h ResourceEventHandler, indexers Indexers, transform TransformFunc,
) (Indexer, Controller) {
	store, controller := NewInformerWithOptions(InformerOptions{
		ListerWatcher: lw, ObjectType: example, ResyncPeriod: resync, Handler: h, Indexers: indexers, Transform: transform,
	})
	return store.(Indexer), controller
}
