package controllerruntime

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Option changes a cache in ways that cache.Options does not have; see [NewCacheWith].
type Option func(*extras)

// extras are the settings of this module.
type extras struct {
	lean                   lean
	packed                 packed
	failFast, oneWatch     bool
	warnAbove, refuseAbove int // 0 for no bound
}

// NewCacheWith is [NewCache] with options of this module:
//
//	ctrl.Options{NewCache: controllerruntime.NewCacheWith(controllerruntime.Lean(&corev1.Secret{}))}
func NewCacheWith(optionList ...Option) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		return newCache(config, options, optionList)
	}
}

// FailFast makes Get, List and GetInformer fail at once while the server refuses to list the kind:
// with 401, 403 or 404. Default: they wait until the list is permitted, or their context ends, as
// with controller-runtime's own cache.
//
// The cache goes on asking: every five seconds after a 403 or 404, every half minute after a 401.
// So a later call succeeds once the right is granted or the resource exists. A collection that was
// synced once is read as ever.
//
// WaitForCacheSync still waits: it has no error to return, and a manager that gets false waits for
// ever. A lean kind fails at once without FailFast.
func FailFast() Option { return func(e *extras) { e.failFast = true } }
