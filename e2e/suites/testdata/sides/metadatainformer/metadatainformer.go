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

type SharedInformerFactory = metadatainformer.SharedInformerFactory

func NewSharedInformerFactory(client metadata.Interface, resync time.Duration) SharedInformerFactory {
	if !side.Ours {
		return metadatainformer.NewSharedInformerFactory(client, resync)
	}
	return factory{ours.NewSharedInformerFactory(client, resync)}
}

type factory struct{ SharedInformerFactory }

func (f factory) ForResource(resource schema.GroupVersionResource) informers.GenericInformer {
	generic := f.SharedInformerFactory.ForResource(resource)
	side.MadeIfOurs(generic.Informer())
	return generic
}
