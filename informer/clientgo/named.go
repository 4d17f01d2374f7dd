package clientgo

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo/internal/across"
)

// PublishAs gives the informer the name of a factory in client-go's metrics. It is called before
// Run. It has no place in the interface: package informers calls it.
func (s *shared[T]) PublishAs(factory any, resource schema.GroupVersionResource) {
	s.published = across.NameOf(factory, resource)
}

// publishEvery is how old the version in the metrics may be.
const publishEvery = time.Second

// publish keeps client-go's metrics of a named informer until ctx ends or stop is called.
//
// Only client-go's own queue and store reach the provider that the program has set for all. So the
// metrics are those of an informer that never runs, whose store is told the version.
// Ours has no queue before its store: an event is in the store as soon as it is decoded.
func (s *shared[T]) publish(ctx context.Context) (stop func()) {
	made, _ := cache.NewInformerWithOptions(s.published.InformerOptions)
	told := made.(interface{ Bookmark(string) }) // which each release has that has names
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
