// Package factory has the common parts of the factories in the packages above it.
package factory

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/internal/adapters"
	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/listwatch"
)

// ByResource makes, starts and awaits informers by resource, as client-go's dynamic and metadata
// factories do. Its methods are safe for concurrent use.
type ByResource struct {
	make func(schema.GroupVersionResource) informers.GenericInformer

	mu      sync.Mutex
	made    map[schema.GroupVersionResource]informers.GenericInformer
	started map[schema.GroupVersionResource]bool
	over    bool
	running sync.WaitGroup // grows under mu only
}

// NewByResource returns a factory of the informers that construct makes.
func NewByResource(construct func(schema.GroupVersionResource) informers.GenericInformer) *ByResource {
	return &ByResource{
		make: construct, made: map[schema.GroupVersionResource]informers.GenericInformer{},
		started: map[schema.GroupVersionResource]bool{},
	}
}

// ForResource returns the informer of a resource, and makes it at the first call.
func (f *ByResource) ForResource(resource schema.GroupVersionResource) informers.GenericInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made[resource] == nil {
		f.made[resource] = f.make(resource)
	}
	return f.made[resource]
}

// Start runs, until stop is closed, the informers that do not run yet. It does not block.
func (f *ByResource) Start(stop <-chan struct{}) { f.StartWithContext(wait.ContextForChannel(stop)) }

// StartWithContext is Start with a context.
func (f *ByResource) StartWithContext(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	for resource, informer := range f.made {
		if !f.started[resource] {
			f.started[resource] = true
			f.running.Go(func() { informer.Informer().RunWithContext(ctx) })
		}
	}
}

// WaitForCacheSync blocks until all started informers have synced or stop is closed, and reports
// those that have.
func (f *ByResource) WaitForCacheSync(stop <-chan struct{}) map[schema.GroupVersionResource]bool {
	f.mu.Lock()
	synced := map[schema.GroupVersionResource]bool{}
	waiting := map[schema.GroupVersionResource]cache.SharedIndexInformer{}
	for resource := range f.started {
		waiting[resource] = f.made[resource].Informer()
	}
	f.mu.Unlock()
	for resource, informer := range waiting {
		synced[resource] = cache.WaitForCacheSync(stop, informer.HasSynced)
	}
	return synced
}

// Complete is the factory with the method whose result client-go has from 0.38 on. R is inferred
// from the probe; see package across.
func Complete[R result](f *ByResource, _ interface {
	WaitForCacheSyncWithContext(context.Context) R
}) *complete[R] {
	return &complete[R]{f}
}

type complete[R result] struct{ *ByResource }

// result is the form of cache.GVRSyncResult.
type result interface {
	~struct {
		Err    error
		Synced map[schema.GroupVersionResource]bool
	}
}

// WaitForCacheSyncWithContext is WaitForCacheSync until ctx ends. If some have not synced then, the
// error is the cause.
func (f *complete[R]) WaitForCacheSyncWithContext(ctx context.Context) R {
	synced := f.WaitForCacheSync(ctx.Done())
	for _, ok := range synced {
		if !ok {
			return R{Err: context.Cause(ctx), Synced: synced}
		}
	}
	return R{Synced: synced}
}

// Shutdown lets no more informers start, and blocks until those that run have ended.
func (f *ByResource) Shutdown() {
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	f.running.Wait()
}

// FromConfig reads a resource with a REST client of its own. Objects share memory with those of
// other namespaces that are read with the very same config. It panics if the config makes no
// client, of which its owner has made one before.
func FromConfig(
	config *rest.Config, resource schema.GroupVersionResource, namespace string, example clientgo.Object, optionList ...listwatch.Option,
) listwatch.ListerWatcher[clientgo.Object] {
	client, err := listwatch.NewRESTClient(config, resource.GroupVersion())
	if err != nil {
		panic(err)
	}
	client = sharing.Scoped{Interface: client, Scope: config}
	optionList = append(optionList, listwatch.InNamespace(namespace), adapters.AsClientGo.(listwatch.FuncsOption))
	return listwatch.FromClientLike(client, resource.Resource, example, optionList...)
}

// FromFuncs reads a resource through the functions of a client.
func FromFuncs[L runtime.Object](
	client any, list func(context.Context, metav1.ListOptions) (L, error),
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error), narrow listwatch.FuncsOption,
) listwatch.ListerWatcher[clientgo.Object] {
	options := []listwatch.FuncsOption{narrow, adapters.AsClientGo.(listwatch.FuncsOption)}
	if !watchlist.Supported(client) {
		options = append(options, listwatch.WithoutWatchList())
	}
	return listwatch.FromFuncs[clientgo.Object](list, watch, options...)
}

// Generic is an informer and its lister.
type Generic struct {
	Shared cache.SharedIndexInformer
	Reader cache.GenericLister
}

// Informer returns the informer.
func (g Generic) Informer() cache.SharedIndexInformer { return g.Shared }

// Lister returns its lister.
func (g Generic) Lister() cache.GenericLister { return g.Reader }
