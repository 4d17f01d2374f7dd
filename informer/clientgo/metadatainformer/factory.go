package metadatainformer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/metadata/metadatalister"
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
	// SharedInformerFactory is client-go's.
	SharedInformerFactory = metadatainformer.SharedInformerFactory
	// TweakListOptionsFunc is client-go's.
	TweakListOptionsFunc = metadatainformer.TweakListOptionsFunc
)

// NewForConfig is metadata.NewForConfig. The informers of this package read with the config of this
// client, so that their objects share memory. They read through the functions of any other client,
// such as client-go's fake, and then nothing is shared.
func NewForConfig(config *rest.Config) (metadata.Interface, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &configured{client, rest.CopyConfig(config)}, nil
}

// configured is a metadata client with the config that it was made from.
type configured struct {
	metadata.Interface
	config *rest.Config
}

// SharedInformerOption changes a factory.
type SharedInformerOption func(*settings)

type settings struct {
	transform cache.TransformFunc
	packed    packedResources
}

// WithTransform changes each object before it is stored. transform gets a copy and may write into
// it.
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(s *settings) { s.transform = transform }
}

// WithPacked keeps the objects of these resources as packed bytes; without a resource, those of
// all. Pass packed.Like of package store/packed for like. The option of this name in package
// informers says what a reader pays.
func WithPacked[S factory.PackedStore](
	like func(example clientgo.Object) func(indexes ...store.AnyIndex[clientgo.Object]) S, resources ...schema.GroupVersionResource,
) SharedInformerOption {
	return func(s *settings) { s.packed = factory.PackedBy(like, resources...) }
}

// NewSharedInformerFactory makes a factory of informers of all namespaces. defaultResync is the
// interval of redelivery for handlers that ask for none; 0 means never.
func NewSharedInformerFactory(client metadata.Interface, defaultResync time.Duration) SharedInformerFactory {
	return newFactory(client, defaultResync, metav1.NamespaceAll, nil)
}

// NewSharedInformerFactoryWithOptions is NewSharedInformerFactory with options.
func NewSharedInformerFactoryWithOptions(
	client metadata.Interface, defaultResync time.Duration, optionList ...SharedInformerOption,
) SharedInformerFactory {
	return newFactory(client, defaultResync, metav1.NamespaceAll, nil, optionList...)
}

// NewFilteredSharedInformerFactory makes a factory of informers of one namespace, or of all if
// namespace is empty. tweak may be nil. It is called once for each informer: the label and field
// selectors that it sets are used for every request, and it has no other effect. ForResource panics
// if they are no selectors, a mistake in the program.
func NewFilteredSharedInformerFactory(
	client metadata.Interface, defaultResync time.Duration, namespace string, tweak TweakListOptionsFunc,
) SharedInformerFactory {
	return newFactory(client, defaultResync, namespace, tweak)
}

func newFactory(
	client metadata.Interface, resync time.Duration, namespace string, tweak TweakListOptionsFunc, optionList ...SharedInformerOption,
) SharedInformerFactory {
	var s settings
	for _, option := range optionList {
		option(&s)
	}
	return factory.Complete(factory.NewByResource(func(resource schema.GroupVersionResource) informers.GenericInformer {
		made := newInformer(client, resource, namespace, resync, nil, tweak, s.packed)
		if err := made.Informer().SetTransform(s.transform); err != nil {
			panic(err) // it has not started
		}
		return made
	}), across.DynamicFactory{})
}

// NewFilteredMetadataInformer makes one informer of such a factory, with more indexes.
func NewFilteredMetadataInformer(
	client metadata.Interface, resource schema.GroupVersionResource, namespace string, resync time.Duration,
	indexers cache.Indexers, tweak TweakListOptionsFunc,
) informers.GenericInformer {
	return newInformer(client, resource, namespace, resync, indexers, tweak, packedResources{})
}

// packedResources are the resources that are packed.
type packedResources = factory.Packed[schema.GroupVersionResource]

func newInformer(
	client metadata.Interface, resource schema.GroupVersionResource, namespace string, resync time.Duration,
	indexers cache.Indexers, tweak TweakListOptionsFunc, packed packedResources,
) informers.GenericInformer {
	narrow := clientgo.Tweak(tweak)
	example := &metav1.PartialObjectMetadata{}
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
	return factory.Generic{Shared: shared, Reader: metadatalister.NewRuntimeObjectShim(metadatalister.New(shared.GetIndexer(), resource))}
}
