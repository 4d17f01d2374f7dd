package dynamicinformer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/informer/clientgo/internal/across"
	"github.com/tributary-go/tributary/informer/clientgo/internal/factory"
	"github.com/tributary-go/tributary/store"
)

// The types of client-go's package, for programs that name them.
type (
	// DynamicSharedInformerFactory is client-go's.
	DynamicSharedInformerFactory = dynamicinformer.DynamicSharedInformerFactory
	// TweakListOptionsFunc is client-go's.
	TweakListOptionsFunc = dynamicinformer.TweakListOptionsFunc
)

// NewForConfig is dynamic.NewForConfig. The informers of this package read with the config of this
// client, so that their objects share memory. They read through the functions of any other client,
// such as client-go's fake, and then nothing is shared.
func NewForConfig(config *rest.Config) (dynamic.Interface, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &configured{client, rest.CopyConfig(config)}, nil
}

// configured is a dynamic client with the config that it was made from.
type configured struct {
	dynamic.Interface
	config *rest.Config
}

// DynamicSharedInformerOption changes a factory.
type DynamicSharedInformerOption func(*factory.Settings)

// WithShardSelector keeps the objects of one shard, as [listwatch.Shard] does, by client-go's
// selector; the one that is empty, or nil, selects all.
func WithShardSelector(selector factory.ShardSelector) DynamicSharedInformerOption {
	return func(s *factory.Settings) { s.Narrow = append(s.Narrow, factory.Shard(selector)...) }
}

// WithPacked keeps the objects of these resources as packed bytes; without a resource, those of
// all. Pass packed.Like of package store/packed for like. The option of this name in package
// informers says what a reader pays.
func WithPacked[S factory.PackedStore](
	like func(example clientgo.Object) func(indexes ...store.AnyIndex[clientgo.Object]) S, resources ...schema.GroupVersionResource,
) DynamicSharedInformerOption {
	return func(s *factory.Settings) { s.Packed = factory.PackedBy(like, resources...) }
}

// NewDynamicSharedInformerFactory makes a factory of informers of all namespaces. defaultResync is
// the interval of redelivery for handlers that ask for none; 0 means never.
func NewDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration) DynamicSharedInformerFactory {
	return NewFilteredDynamicSharedInformerFactory(client, defaultResync, metav1.NamespaceAll, nil)
}

// NewDynamicSharedInformerFactoryWithOptions is NewDynamicSharedInformerFactory with options.
func NewDynamicSharedInformerFactoryWithOptions(
	client dynamic.Interface, defaultResync time.Duration, optionList ...DynamicSharedInformerOption,
) DynamicSharedInformerFactory {
	return NewFilteredDynamicSharedInformerFactory(client, defaultResync, metav1.NamespaceAll, nil, optionList...)
}

// NewFilteredDynamicSharedInformerFactory makes a factory of informers of one namespace, or of all
// if namespace is empty. tweak may be nil. It is called once for each informer: the label and field
// selectors that it sets are used for every request, and it has no other effect. ForResource panics
// if they are no selectors, a mistake in the program. client-go's function takes no options.
func NewFilteredDynamicSharedInformerFactory(
	client dynamic.Interface, defaultResync time.Duration, namespace string, tweak TweakListOptionsFunc,
	optionList ...DynamicSharedInformerOption,
) DynamicSharedInformerFactory {
	var s factory.Settings
	for _, option := range optionList {
		option(&s)
	}
	return factory.Complete(factory.NewByResource(func(resource schema.GroupVersionResource) informers.GenericInformer {
		return newInformer(s, client, resource, namespace, defaultResync, nil, tweak)
	}), across.DynamicFactory{})
}

// NewFilteredDynamicInformer makes one informer of such a factory, with more indexes.
func NewFilteredDynamicInformer(
	client dynamic.Interface, resource schema.GroupVersionResource, namespace string, resync time.Duration,
	indexers cache.Indexers, tweak TweakListOptionsFunc,
) informers.GenericInformer {
	return newInformer(factory.Settings{}, client, resource, namespace, resync, indexers, tweak)
}

func newInformer(
	s factory.Settings, client dynamic.Interface, resource schema.GroupVersionResource, namespace string, resync time.Duration,
	indexers cache.Indexers, tweak TweakListOptionsFunc,
) informers.GenericInformer {
	functions := client.Resource(resource).Namespace(namespace)
	of := factory.Resource[*unstructured.UnstructuredList]{
		GroupVersionResource: resource, Namespace: namespace, Client: client, List: functions.List, Watch: functions.Watch,
	}
	if own, ok := client.(*configured); ok {
		of.Config = own.config
	}
	shared := factory.NewInformer(s, of, &unstructured.Unstructured{}, resync, indexers, tweak)
	return factory.Generic{Shared: shared, Reader: dynamiclister.NewRuntimeObjectShim(dynamiclister.New(shared.GetIndexer(), resource))}
}
