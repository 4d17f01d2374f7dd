// Package factory has the common parts of the factories in the packages above it.
package factory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

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
	"github.com/tributary-go/tributary/internal/null"
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

// Settings are the options of a factory by resource.
type Settings struct {
	Packed    Packed[schema.GroupVersionResource]
	Narrow    []listwatch.FuncsOption
	Transform cache.TransformFunc
}

// ShardSelector is the part of client-go's sharding.Selector that decides, of any release.
type ShardSelector interface {
	Matches(runtime.Object) (bool, error)
	String() string
}

// Shard is the option of a selector, and nil if it selects all.
func Shard(selector ShardSelector) []listwatch.FuncsOption {
	if null.Is(selector) || selector.String() == "" {
		return nil
	}
	return []listwatch.FuncsOption{adapters.Shard(selector.String()).(listwatch.FuncsOption)}
}

// Resource is a resource of one namespace, or of all, as a client has it.
type Resource[L runtime.Object] struct {
	schema.GroupVersionResource
	Namespace string
	Client    any
	// Config is the one that the client was made from. Objects share memory with those of other
	// namespaces that are read with the very same config. Without one, the functions read.
	Config *rest.Config
	List   func(context.Context, metav1.ListOptions) (L, error)
	Watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// NewInformer makes an informer of a resource. It panics if tweak sets no selectors, if an indexer
// cannot be added, and if the config makes no client, of which its owner has made one before.
func NewInformer[L runtime.Object](
	s Settings, of Resource[L], example clientgo.Object, resync time.Duration, indexers cache.Indexers, tweak func(*metav1.ListOptions),
) cache.SharedIndexInformer {
	options, reading := s.Packed.Options(of.GroupVersionResource, example)
	narrow := append(slices.Clone(s.Narrow), clientgo.Tweak(tweak), adapters.AsClientGo.(listwatch.FuncsOption))
	shared := clientgo.FromSource(of.source(example, reading, narrow), example, resync, options...)
	if err := errors.Join(shared.AddIndexers(indexers), shared.SetTransform(s.Transform)); err != nil {
		panic(err)
	}
	return shared
}

func (of Resource[L]) source(example clientgo.Object, reading []listwatch.Option, narrow []listwatch.FuncsOption) listwatch.ListerWatcher[clientgo.Object] {
	if of.Config == nil {
		if !watchlist.Supported(of.Client) {
			narrow = append(narrow, listwatch.WithoutWatchList())
		}
		return listwatch.FromFuncs[clientgo.Object](of.List, of.Watch, narrow...)
	}
	client, err := listwatch.NewRESTClient(of.Config, of.GroupVersion())
	if err != nil {
		panic(err)
	}
	for _, option := range narrow {
		reading = append(reading, option)
	}
	client = sharing.Scoped{Interface: client, Scope: of.Config}
	return listwatch.FromClientLike(client, of.GroupVersionResource.Resource, example, append(reading, listwatch.InNamespace(of.Namespace))...)
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
