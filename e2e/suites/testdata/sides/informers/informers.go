// Package informers has the names of k8s.io/client-go/informers. They lead to client-go's or to ours.
package informers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/e2e/suites/sides/side"
	ours "github.com/tributary-go/tributary/informer/clientgo/informers"
)

type (
	SharedInformerFactory = informers.SharedInformerFactory
	GenericInformer       = informers.GenericInformer
)

// SharedInformerOption is the option of each side. The namespace is for groups.go.
type SharedInformerOption struct {
	theirs    informers.SharedInformerOption
	ours      ours.SharedInformerOption
	namespace string
}

func NewSharedInformerFactory(client kubernetes.Interface, resync time.Duration) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, resync)
}

func NewSharedInformerFactoryWithOptions(
	client kubernetes.Interface, resync time.Duration, options ...SharedInformerOption,
) SharedInformerFactory {
	var theirs []informers.SharedInformerOption
	var own []ours.SharedInformerOption
	namespace := ""
	for _, o := range options {
		theirs, own = append(theirs, o.theirs), append(own, o.ours)
		if o.namespace != "" {
			namespace = o.namespace
		}
	}
	if !side.Ours {
		return informers.NewSharedInformerFactoryWithOptions(client, resync, theirs...)
	}
	return &factory{SharedInformerFactory: ours.NewSharedInformerFactoryWithOptions(client, resync, own...), namespace: namespace}
}

func NewFilteredSharedInformerFactory(
	client kubernetes.Interface, resync time.Duration, namespace string, tweak internalinterfaces.TweakListOptionsFunc,
) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, resync, WithNamespace(namespace), WithTweakListOptions(tweak))
}

func WithNamespace(namespace string) SharedInformerOption {
	return SharedInformerOption{informers.WithNamespace(namespace), ours.WithNamespace(namespace), namespace}
}

func WithTweakListOptions(tweak internalinterfaces.TweakListOptionsFunc) SharedInformerOption {
	return SharedInformerOption{informers.WithTweakListOptions(tweak), ours.WithTweakListOptions(tweak), ""}
}

func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return SharedInformerOption{informers.WithTransform(transform), ours.WithTransform(transform), ""}
}

func WithCustomResyncConfig(resync map[metav1.Object]time.Duration) SharedInformerOption {
	return SharedInformerOption{informers.WithCustomResyncConfig(resync), ours.WithCustomResyncConfig(resync), ""}
}

// factory is our factory, and counts. groups.go beside it is that of our package: the informers of
// each group come from InformerFor.
type factory struct {
	SharedInformerFactory
	namespace string
}

// generated is as in our package.
type generated struct{ *factory }

func (f *factory) generated() generated { return generated{f} }

func (g generated) InformerFor(obj runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return g.factory.InformerFor(obj, nil)
}

func (f *factory) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	informer := f.SharedInformerFactory.InformerFor(obj, newFunc)
	side.MadeIfOurs(informer)
	return informer
}

func (f *factory) ForResource(resource schema.GroupVersionResource) (GenericInformer, error) {
	generic, err := f.SharedInformerFactory.ForResource(resource)
	if err == nil {
		side.MadeIfOurs(generic.Informer())
	}
	return generic, err
}
