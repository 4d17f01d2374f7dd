// Package cache has the constructors of informers of k8s.io/client-go/tools/cache. They lead to
// client-go's or to ours.
package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/e2e/suites/sides/side"
	"github.com/tributary-go/tributary/informer/clientgo"
)

func NewSharedIndexInformer(
	lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers,
) cache.SharedIndexInformer {
	return NewSharedIndexInformerWithOptions(lw, example, cache.SharedIndexInformerOptions{ResyncPeriod: resync, Indexers: indexers})
}

func NewSharedIndexInformerWithOptions(
	lw cache.ListerWatcher, example runtime.Object, options cache.SharedIndexInformerOptions,
) cache.SharedIndexInformer {
	if !side.Ours {
		return cache.NewSharedIndexInformerWithOptions(lw, example, options)
	}
	informer := clientgo.NewInformer(lw, example, options.ResyncPeriod, options.Indexers)
	side.Made(informer)
	return informer
}

func NewSharedInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration) cache.SharedInformer {
	return NewSharedIndexInformer(lw, example, resync, cache.Indexers{})
}

func NewInformer(
	lw cache.ListerWatcher, example runtime.Object, resync time.Duration, handler cache.ResourceEventHandler,
) (cache.Store, cache.Controller) {
	if !side.Ours {
		return cache.NewInformer(lw, example, resync, handler)
	}
	return NewIndexerInformer(lw, example, resync, handler, cache.Indexers{})
}

func NewIndexerInformer(
	lw cache.ListerWatcher, example runtime.Object, resync time.Duration, handler cache.ResourceEventHandler, indexers cache.Indexers,
) (cache.Indexer, cache.Controller) {
	if !side.Ours {
		return cache.NewIndexerInformer(lw, example, resync, handler, indexers)
	}
	indexer, controller := clientgo.NewIndexerInformer(lw, example, resync, handler, indexers)
	side.Made(controller.(cache.SharedInformer))
	return indexer, controller
}

func NewInformerWithOptions(o cache.InformerOptions) (cache.Store, cache.Controller) {
	if !side.Ours {
		return cache.NewInformerWithOptions(o)
	}
	informer := clientgo.NewInformer(o.ListerWatcher, o.ObjectType, o.ResyncPeriod, o.Indexers)
	if err := informer.SetTransform(o.Transform); err != nil {
		panic(err)
	}
	if _, err := informer.AddEventHandler(o.Handler); err != nil {
		panic(err)
	}
	side.Made(informer)
	return informer.GetStore(), informer.(cache.Controller)
}

// New makes the low-level controller of programs that store objects themselves: their Process is a
// handler of our informer.
func New(c *cache.Config) cache.Controller {
	if !side.Ours {
		return cache.New(c)
	}
	informer := clientgo.NewInformer(c.ListerWatcher, c.ObjectType, c.FullResyncPeriod, nil)
	side.Made(informer)
	process := func(kind cache.DeltaType, obj any, initial bool) {
		if err := c.Process(cache.Deltas{{Type: kind, Object: obj}}, initial); err != nil {
			utilruntime.HandleError(err)
		}
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { process(cache.Added, obj, initial) },
		UpdateFunc: func(_, obj any) { process(cache.Updated, obj, false) },
		DeleteFunc: func(obj any) { process(cache.Deleted, obj, false) },
	})
	if err != nil {
		panic(err)
	}
	return controller{informer.(cache.Controller), handler}
}

// controller is synced when its handler has been told the first list.
type controller struct {
	cache.Controller
	handler cache.ResourceEventHandlerRegistration
}

func (c controller) HasSynced() bool                     { return c.handler.HasSynced() }
func (c controller) HasSyncedChecker() cache.DoneChecker { return c.handler.HasSyncedChecker() }
