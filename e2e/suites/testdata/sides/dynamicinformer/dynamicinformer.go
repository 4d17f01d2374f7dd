// Package dynamicinformer has the names of k8s.io/client-go/dynamic/dynamicinformer. They lead to
// client-go's or to ours.
package dynamicinformer

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/e2e/suites/sides/side"
	ours "github.com/tributary-go/tributary/informer/clientgo/dynamicinformer"
)

type (
	DynamicSharedInformerFactory = dynamicinformer.DynamicSharedInformerFactory
	TweakListOptionsFunc         = dynamicinformer.TweakListOptionsFunc
)

func NewDynamicSharedInformerFactory(client dynamic.Interface, resync time.Duration) DynamicSharedInformerFactory {
	return NewFilteredDynamicSharedInformerFactory(client, resync, "", nil)
}

func NewFilteredDynamicSharedInformerFactory(
	client dynamic.Interface, resync time.Duration, namespace string, tweak TweakListOptionsFunc,
) DynamicSharedInformerFactory {
	if !side.Ours {
		return dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, resync, namespace, tweak)
	}
	return factory{ours.NewFilteredDynamicSharedInformerFactory(client, resync, namespace, tweak)}
}

func NewFilteredDynamicInformer(
	client dynamic.Interface, resource schema.GroupVersionResource, namespace string, resync time.Duration,
	indexers cache.Indexers, tweak TweakListOptionsFunc,
) informers.GenericInformer {
	if !side.Ours {
		return dynamicinformer.NewFilteredDynamicInformer(client, resource, namespace, resync, indexers, tweak)
	}
	generic := ours.NewFilteredDynamicInformer(client, resource, namespace, resync, indexers, tweak)
	side.MadeIfOurs(generic.Informer())
	return generic
}

type factory struct{ DynamicSharedInformerFactory }

func (f factory) ForResource(resource schema.GroupVersionResource) informers.GenericInformer {
	generic := f.DynamicSharedInformerFactory.ForResource(resource)
	side.MadeIfOurs(generic.Informer())
	return generic
}
