// Package across lets one source serve several releases of client-go. It has what newer releases
// have and older ones lack, in a form that compiles with all of them.
//
// Go has no build constraint for the release of a dependency. But it has a rule for embedded types:
// of two members with one name, the one at the lesser depth is meant. So a probe embeds a type of
// client-go's and, deeper, a stand-in for each member that a release may lack:
//
//	type Informer struct {
//		cache.SharedIndexInformer // its HasSyncedChecker has depth 1, if the release has one
//		lacking                   // the stand-in HasSyncedChecker has depth 3
//	}
//
// Informer{}.HasSyncedChecker compiles with each release, and is client-go's own method where there
// is one. The type of its result is one that older releases lack, so no line of ours may name it. A
// generic function infers it from the probe instead:
//
//	func completed[D any](s *shared, _ interface{ HasSyncedChecker() D }) *complete[D]
//	func (c *complete[D]) HasSyncedChecker() D
//
//	return completed(s, across.Informer{}) // D is cache.DoneChecker; before 0.36, struct{}
//
// The result is a cache.SharedIndexInformer, so the compiler still checks each release: one that
// adds another method to the interface compiles only when that method is written. Therefore a probe
// is never handed out, nor client-go's own value embedded in what is: a new method would come from
// there, silently, and work on something else than ours.
//
// A member that a new release adds costs one line here. When the oldest release is dropped, the
// lines of the next one go. Functions and types of a package have no depth: do without new ones.
package across

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

type (
	lacking struct{ deeper } // at depth 1, a stand-in would be ambiguous with client-go's own
	deeper  struct {
		methods
		Logger                  *klog.Logger    // of options, from 0.36 on
		Backoff                 *wait.Backoff   // of options of reflectors, from 0.36 on
		Identifier              nameAndResource // of options, from 0.36 on
		InformerMetricsProvider any             // of options, from 0.36 on
		ShardSelector           any             // of options of shared informers, from 0.38 on
	}
)

// methods are never called: they are there for their types.
type methods struct{}

func (methods) HasSyncedChecker() (none struct{})      { return none } // from 0.36 on
func (methods) InformerName() *name                    { return nil }  // from 0.36 on
func (methods) Lifecycle() (none struct{})             { return none } // from 0.37 on
func (methods) SetShardSelector(struct{}) (none error) { return none } // from 0.38 on

// From 0.36 on; of factories by resource, from 0.38 on.
func (methods) WaitForCacheSyncWithContext(context.Context) (none SyncResult) { return none }

// SyncResult has the form of cache.GVRSyncResult.
type SyncResult struct {
	Err    error
	Synced map[schema.GroupVersionResource]bool
}

type (
	name            struct{} // for cache.InformerName
	nameAndResource struct{} // for cache.InformerNameAndResource
)

func (*name) WithResource(schema.GroupVersionResource) (none nameAndResource) { return none }
func (nameAndResource) Reserved() bool                                        { return false }

// Probes of interfaces.
type (
	// Informer is for the methods of informers, of registrations and of controllers.
	Informer struct {
		cache.SharedIndexInformer
		lacking
	}
	// Factory is for those of a factory of the built-in types.
	Factory struct {
		informers.SharedInformerFactory
		lacking
	}
	// DynamicFactory is for those of a factory by resource.
	DynamicFactory struct {
		dynamicinformer.DynamicSharedInformerFactory
		lacking
	}
)

// Probes of options. What this release lacks is zero, and has no effect.
type (
	// ReflectorOptions are client-go's.
	ReflectorOptions struct {
		cache.ReflectorOptions
		lacking
	}
	// InformerOptions are client-go's.
	InformerOptions struct {
		cache.InformerOptions
		lacking
	}
	// SharedIndexInformerOptions are client-go's.
	SharedIndexInformerOptions struct {
		cache.SharedIndexInformerOptions
		lacking
	}
)

// NameOf has the name of a resource in a factory's metrics, as Identifier. It is empty if the
// factory has no name.
func NameOf(factory any, resource schema.GroupVersionResource) (options InformerOptions) {
	if named := namedAs(factory, Factory{}); named != nil {
		options.Identifier = named.InformerName().WithResource(resource)
	}
	return options
}

// namedAs is the factory, if it has the release's own method InformerName.
func namedAs[N any](factory any, _ interface{ InformerName() N }) interface{ InformerName() N } {
	named, _ := factory.(interface{ InformerName() N })
	return named
}
