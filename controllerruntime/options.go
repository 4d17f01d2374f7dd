package controllerruntime

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Option changes a cache in ways that cache.Options does not have; see [NewCacheWith].
type Option func(*extras)

// extras are the settings of this module.
type extras struct {
	lean lean
}

// NewCacheWith is [NewCache] with options of this module:
//
//	ctrl.Options{NewCache: controllerruntime.NewCacheWith(controllerruntime.Lean(&corev1.Secret{}))}
func NewCacheWith(optionList ...Option) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		return newCache(config, options, optionList)
	}
}
