package informers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/informer/clientgo/internal/across"
	internal "github.com/tributary-go/tributary/informer/clientgo/internal/factory"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// The types of client-go's package, for programs that name them.
type (
	// SharedInformerFactory is client-go's.
	SharedInformerFactory = informers.SharedInformerFactory
	// GenericInformer is client-go's.
	GenericInformer = informers.GenericInformer
)

// SharedInformerOption changes a factory.
type SharedInformerOption func(*settings)

type settings struct {
	namespace string
	narrow    []listwatch.Option
	tweak     internalinterfaces.TweakListOptionsFunc
	factory   []informers.SharedInformerOption
	name      any // a *cache.InformerName, or nil
	packed    internal.Packed[reflect.Type]
	shard     internal.ShardSelector // nil: all objects
}

// NewSharedInformerFactory makes a factory of informers of all namespaces. defaultResync is the
// interval of redelivery for handlers that ask for none; 0 means never.
func NewSharedInformerFactory(client kubernetes.Interface, defaultResync time.Duration) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewSharedInformerFactoryWithOptions makes a factory. Nothing is asked of the server before Start.
// It panics if the options of [WithTweakListOptions] are no selectors, a mistake in the program.
func NewSharedInformerFactoryWithOptions(
	client kubernetes.Interface, defaultResync time.Duration, optionList ...SharedInformerOption,
) SharedInformerFactory {
	var s settings
	for _, option := range optionList {
		option(&s)
	}
	f := &factory{
		inner:  informers.NewSharedInformerFactoryWithOptions(client, defaultResync, s.factory...),
		client: client, name: s.name, packed: s.packed, shard: s.shard,
		namespace: s.namespace, narrow: append(s.narrow, listwatch.InNamespace(s.namespace), clientgo.Tweak(s.tweak)),
	}
	f.self = completed(f, across.Factory{})
	return f.self
}

// NewFilteredSharedInformerFactory is [NewSharedInformerFactoryWithOptions] with [WithNamespace]
// and [WithTweakListOptions]; tweak may be nil. It is here for programs that call client-go's.
//
// Deprecated: use NewSharedInformerFactoryWithOptions.
func NewFilteredSharedInformerFactory(
	client kubernetes.Interface, defaultResync time.Duration, namespace string, tweak internalinterfaces.TweakListOptionsFunc,
) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync, WithNamespace(namespace), WithTweakListOptions(tweak))
}

// WithNamespace keeps one namespace. Types in cluster scope are not narrowed.
func WithNamespace(namespace string) SharedInformerOption {
	return func(s *settings) {
		s.namespace = namespace
		s.factory = append(s.factory, informers.WithNamespace(namespace))
	}
}

// WithTweakListOptions narrows all collections. tweak is called once: the label and field selectors
// that it sets are used for every request, and it has no other effect. A nil tweak sets none.
func WithTweakListOptions(tweak internalinterfaces.TweakListOptionsFunc) SharedInformerOption {
	return func(s *settings) {
		s.tweak = tweak
		s.factory = append(s.factory, informers.WithTweakListOptions(tweak))
	}
}

// WithTransform changes each object before it is stored. transform gets a copy and may write into
// it. To drop managedFields, [WithListWatch] with listwatch.DropManagedFields costs less.
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(s *settings) { s.factory = append(s.factory, informers.WithTransform(transform)) }
}

// WithCustomResyncConfig gives types an interval of redelivery of their own.
func WithCustomResyncConfig(resync map[metav1.Object]time.Duration) SharedInformerOption {
	return func(s *settings) { s.factory = append(s.factory, informers.WithCustomResyncConfig(resync)) }
}

// WithInformerName sets the factory's InformerName, under which client-go's metrics of queues and
// stores are published. Of our informers too: the queue is always empty, since ours has none, and
// the version of the store is at most a second old. [informer.Status.Samples] has more metrics.
//
// name is a *cache.InformerName, a type that client-go has from 0.36 on.
func WithInformerName[N interface{ Release() }](name N) SharedInformerOption {
	return func(s *settings) { s.name = name }
}

// WithListWatch sets how all collections are read. client-go's package has no such option.
func WithListWatch(optionList ...listwatch.Option) SharedInformerOption {
	return func(s *settings) { s.narrow = append(s.narrow, optionList...) }
}

// WithShardSelector keeps the objects of one shard, as [listwatch.Shard] does, by client-go's
// selector; the one that is empty, or nil, selects all. Informers of client-go's own have all
// objects, which is logged: those of a program's constructor, and those of Lifecycle.
func WithShardSelector(selector internal.ShardSelector) SharedInformerOption {
	return func(s *settings) {
		s.shard = nil
		for _, option := range internal.Shard(selector) {
			s.shard, s.narrow = selector, append(s.narrow, option)
		}
	}
}

// WithPacked keeps the objects of these types as packed bytes, a tenth of the memory or less;
// without an object, those of all types. Pass packed.Like of package store/packed for like:
//
//	informers.WithPacked(packed.Like, &corev1.Pod{})
//
// What comes is decoded once and encoded. A lister's Get decodes an object that was not read
// lately, and its List all objects of the namespace; a handler decodes both objects of an event,
// unless [clientgo.ByMetadata] wraps it. An index decodes each object that comes, but for
// cache.NamespaceIndex.
func WithPacked[S internal.PackedStore](
	like func(example clientgo.Object) func(indexes ...store.AnyIndex[clientgo.Object]) S, objects ...clientgo.Object,
) SharedInformerOption {
	var types []reflect.Type
	for _, obj := range objects {
		types = append(types, reflect.TypeOf(obj))
	}
	return func(s *settings) { s.packed = internal.PackedBy(like, types...) }
}

// factory is a factory with our informers, but for the methods that complete has.
type factory struct {
	inner     SharedInformerFactory // client-go's, which starts informers and waits for them
	self      SharedInformerFactory // this one, complete
	shard     internal.ShardSelector
	client    kubernetes.Interface
	name      any
	namespace string
	narrow    []listwatch.Option
	packed    internal.Packed[reflect.Type]
}

func (f *factory) Start(stop <-chan struct{}) { f.inner.Start(stop) }

func (f *factory) StartWithContext(ctx context.Context) {
	if inner, ok := f.inner.(interface{ StartWithContext(context.Context) }); ok { // from 0.36 on
		inner.StartWithContext(ctx)
		return
	}
	f.inner.Start(ctx.Done())
}

func (f *factory) WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool {
	return f.inner.WaitForCacheSync(stop)
}

func (f *factory) Shutdown() {
	f.inner.Shutdown()
	if name, ok := f.name.(interface{ Release() }); ok {
		name.Release()
	}
}

// InformerFor calls newFunc, as client-go's factory does, unless it has an informer of the type: a
// program's own constructor has a selector or a transform. An informer of client-go's that it makes
// is logged, once. Without newFunc it makes an informer of ours, of any type that the clientset
// has.
func (f *factory) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	if newFunc != nil {
		return f.inner.InformerFor(obj, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			return f.taken(obj, newFunc(client, resync))
		})
	}
	return f.inner.InformerFor(obj, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		made := f.make(client, obj, resync)
		if kinds, _, err := scheme.Scheme.ObjectKinds(obj); err == nil {
			resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
			made.(interface {
				PublishAs(factory any, resource schema.GroupVersionResource)
			}).PublishAs(f.self, resource)
		}
		return made
	})
}

// taken takes in an informer that a program's constructor has made.
func (f *factory) taken(obj runtime.Object, made cache.SharedIndexInformer) cache.SharedIndexInformer {
	ours, ok := made.(interface{ SetShard(selector any) error })
	switch {
	case !ok && f.shard != nil:
		klog.Background().Error(errAllShards, "The shard selector has no effect", "type", fmt.Sprintf("%T", obj))
	case !ok:
		klog.Background().Info("An informer of this factory is client-go's: call clientgo.FromClientset in its constructor", "type", fmt.Sprintf("%T", obj))
	case f.shard != nil:
		_ = ours.SetShard(f.shard) // cannot fail: it has not started
	}
	return made
}

var errAllShards = errors.New("an informer of this factory is client-go's, and has all objects: call clientgo.FromClientset in its constructor")

func (f *factory) make(client kubernetes.Interface, obj runtime.Object, resync time.Duration) cache.SharedIndexInformer {
	if example, ok := obj.(clientgo.Object); ok {
		if options, narrow := f.packed.Options(reflect.TypeOf(obj), example); options != nil {
			return clientgo.FromSource(clientgo.SourceOf(client, obj, slices.Concat(f.narrow, narrow)...), obj, resync, options...)
		}
	}
	return clientgo.FromClientset(client, obj, resync, f.narrow...)
}

// ForResource puts our informer into client-go's factory, which then finds it there.
func (f *factory) ForResource(resource schema.GroupVersionResource) (GenericInformer, error) {
	for kind := range scheme.Scheme.KnownTypes(resource.GroupVersion()) {
		plural, _ := meta.UnsafeGuessKindToResource(resource.GroupVersion().WithKind(kind))
		if plural != resource {
			continue
		}
		obj, err := scheme.Scheme.New(resource.GroupVersion().WithKind(kind))
		if err == nil && clientgo.HasResource(f.client, obj) {
			f.InformerFor(obj, nil)
		}
	}
	return f.inner.ForResource(resource)
}

// complete has the methods whose types only some releases of client-go have: N is
// *cache.InformerName and R cache.SyncResult, both from 0.36 on, and L lifecycle.Interface, from
// 0.37 on. See package across.
type complete[N, R, L any] struct{ *factory }

func completed[N, R, L any](f *factory, _ interface {
	InformerName() N
	WaitForCacheSyncWithContext(context.Context) R
	Lifecycle() L
}) *complete[N, R, L] {
	return &complete[N, R, L]{f}
}

func (f *complete[N, R, L]) InformerName() (name N) {
	name, _ = f.name.(N)
	return name
}

func (f *complete[N, R, L]) WaitForCacheSyncWithContext(ctx context.Context) R {
	return f.inner.(interface {
		WaitForCacheSyncWithContext(context.Context) R
	}).WaitForCacheSyncWithContext(ctx)
}

// Lifecycle has informers of client-go's own, without the factory's name, unless ForResource has
// made them: the oldest release has no package that makes the group from a factory.
func (f *complete[N, R, L]) Lifecycle() L { return f.inner.(interface{ Lifecycle() L }).Lifecycle() }

// generated is the factory of client-go's generated informers. It makes ours in place of what
// newFunc makes, unless the clientset hides the type.
type generated struct {
	SharedInformerFactory // ours, complete
	factory               *factory
}

func (f *factory) generated() generated { return generated{f.self, f} }

func (g generated) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	if clientgo.HasResource(g.factory.client, obj) {
		newFunc = nil
	}
	return g.factory.InformerFor(obj, newFunc)
}
