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
	"github.com/tributary-go/tributary/listwatch"
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

// SharedInformerOption changes a factory. client-go's package has none.
type SharedInformerOption func(*settings)

type settings struct{ packed packedResources }

// WithPacked keeps the objects of these resources as packed bytes; without a resource, those of
// all. Pass packed.Like of package store/packed for like. The option of this name in package
// informers says what a reader pays.
func WithPacked[S factory.PackedStore](
	like func(example clientgo.Object) func(indexes ...store.AnyIndex[clientgo.Object]) S, resources ...schema.GroupVersionResource,
) SharedInformerOption {
	return func(s *settings) { s.packed = factory.PackedBy(like, resources...) }
}

// NewDynamicSharedInformerFactory makes a factory of informers of all namespaces. defaultResync is
// the interval of redelivery for handlers that ask for none; 0 means never.
func NewDynamicSharedInformerFactory(
	client dynamic.Interface, defaultResync time.Duration, optionList ...SharedInformerOption,
) DynamicSharedInformerFactory {
	return NewFilteredDynamicSharedInformerFactory(client, defaultResync, metav1.NamespaceAll, nil, optionList...)
}

// NewFilteredDynamicSharedInformerFactory makes a factory of informers of one namespace, or of all
// if namespace is empty. tweak may be nil. It is called once for each informer: the label and field
// selectors that it sets are used for every request, and it has no other effect. ForResource panics
// if they are no selectors, a mistake in the program.
func NewFilteredDynamicSharedInformerFactory(
	client dynamic.Interface, defaultResync time.Duration, namespace string, tweak TweakListOptionsFunc,
	optionList ...SharedInformerOption,
) DynamicSharedInformerFactory {
	var s settings
	for _, option := range optionList {
		option(&s)
	}
	return factory.Complete(factory.NewByResource(func(resource schema.GroupVersionResource) informers.GenericInformer {
		return newInformer(client, resource, namespace, defaultResync, nil, tweak, s.packed)
	}), across.DynamicFactory{})
}

// NewFilteredDynamicInformer makes one informer of such a factory, with more indexes.
func NewFilteredDynamicInformer(
	client dynamic.Interface, resource schema.GroupVersionResource, namespace string, resync time.Duration,
	indexers cache.Indexers, tweak TweakListOptionsFunc,
) informers.GenericInformer {
	return newInformer(client, resource, namespace, resync, indexers, tweak, packedResources{})
}

// packedResources are the resources that are packed.
type packedResources = factory.Packed[schema.GroupVersionResource]

func newInformer(
	client dynamic.Interface, resource schema.GroupVersionResource, namespace string, resync time.Duration,
	indexers cache.Indexers, tweak TweakListOptionsFunc, packed packedResources,
) informers.GenericInformer {
	narrow := clientgo.Tweak(tweak)
	example := &unstructured.Unstructured{}
	options, reading := packed.Options(resource, example)
	var source listwatch.ListerWatcher[clientgo.Object]
	if own, ok := client.(*configured); ok {
		source = factory.FromConfig(own.config, resource, namespace, example, append(reading, narrow)...)
	} else {
		of := client.Resource(resource).Namespace(namespace)
		source = factory.FromFuncs(client, of.List, of.Watch, narrow)
	}
	shared := clientgo.FromSource(source, example, resync, options...)
	if err := shared.AddIndexers(indexers); err != nil {
		panic(err)
	}
	return factory.Generic{Shared: shared, Reader: dynamiclister.NewRuntimeObjectShim(dynamiclister.New(shared.GetIndexer(), resource))}
}
