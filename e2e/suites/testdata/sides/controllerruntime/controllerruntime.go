// Package controllerruntime has the name of our package's cache. It leads to controller-runtime's
// or to ours.
package controllerruntime

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/e2e/suites/sides/side"
)

func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	if !side.Ours {
		return cache.New(config, options)
	}
	side.Made()
	return controllerruntime.NewCache(config, options)
}
