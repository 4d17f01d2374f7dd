// Package cache has the constructors of informers of k8s.io/client-go/tools/cache. They lead to
// client-go's or to ours.
package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
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
	side.Made()
	return clientgo.NewSharedIndexInformerWithOptions(lw, example, options)
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
	side.Made()
	return clientgo.NewIndexerInformer(lw, example, resync, handler, indexers)
}

func NewInformerWithOptions(options cache.InformerOptions) (cache.Store, cache.Controller) {
	if !side.Ours {
		return cache.NewInformerWithOptions(options)
	}
	side.Made()
	return clientgo.NewInformerWithOptions(options)
}

func New(config *cache.Config) cache.Controller {
	if !side.Ours {
		return cache.New(config)
	}
	side.Made()
	return clientgo.New(config)
}
