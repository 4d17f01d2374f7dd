package clientgo

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// publication says where client-go's metrics of an informer go. It is empty for an informer without
// a name.
type publication struct {
	id       cache.InformerNameAndResource
	provider cache.InformerMetricsProvider // nil: the one that the program has set for all
}

// Publish gives the informer a name in client-go's metrics. It is called before Run. It has no
// place in the interface: package informers calls it.
func (s *shared[T]) Publish(id cache.InformerNameAndResource) { s.published.id = id }

// publishEvery is how old the version in the metrics may be.
const publishEvery = time.Second

// publish keeps client-go's metrics of a named informer until ctx ends or stop is called.
//
// Only client-go's own queue and store reach the provider that the program has set for all. So the
// metrics are those of a queue that stays empty, and of an empty store that is told the version.
// Ours has no queue before its store: an event is in the store as soon as it is decoded.
func (s *shared[T]) publish(ctx context.Context) (stop func()) {
	id, provider := s.published.id, s.published.provider
	cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true, Identifier: id, MetricsProvider: provider})
	told := cache.NewThreadSafeStore(nil, nil, cache.WithThreadSafeStoreMetrics(id, provider))
	ctx, cancel := context.WithCancel(ctx)
	var publishing sync.WaitGroup
	publishing.Go(func() {
		wait.UntilWithContext(ctx, func(context.Context) { told.Bookmark(s.LastSyncResourceVersion()) }, publishEvery)
	})
	return func() {
		cancel()
		publishing.Wait()
		told.Bookmark(s.LastSyncResourceVersion())
	}
}
