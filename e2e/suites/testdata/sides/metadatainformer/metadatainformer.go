// Package metadatainformer has the names of k8s.io/client-go/metadata/metadatainformer. They lead
// to client-go's or to ours.
package metadatainformer

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"

	"github.com/tributary-go/tributary/e2e/suites/sides/side"
	ours "github.com/tributary-go/tributary/informer/clientgo/metadatainformer"
)

type (
	SharedInformerFactory = metadatainformer.SharedInformerFactory
	TweakListOptionsFunc  = metadatainformer.TweakListOptionsFunc
)

func NewSharedInformerFactory(client metadata.Interface, resync time.Duration) SharedInformerFactory {
	return NewFilteredSharedInformerFactory(client, resync, "", nil)
}

func NewFilteredSharedInformerFactory(
	client metadata.Interface, resync time.Duration, namespace string, tweak TweakListOptionsFunc,
) SharedInformerFactory {
	if !side.Ours {
		return metadatainformer.NewFilteredSharedInformerFactory(client, resync, namespace, tweak)
	}
	return factory{ours.NewFilteredSharedInformerFactory(client, resync, namespace, tweak)}
}

type factory struct{ SharedInformerFactory }

func (f factory) ForResource(resource schema.GroupVersionResource) informers.GenericInformer {
	generic := f.SharedInformerFactory.ForResource(resource)
	side.MadeIfOurs(generic.Informer())
	return generic
}
