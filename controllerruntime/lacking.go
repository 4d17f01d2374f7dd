package controllerruntime

import "sigs.k8s.io/controller-runtime/pkg/client"

// controller-runtime has two options from its release 0.25 on: EnableReadYourWritesConsistency, and
// DisableReadYourWritesConsistency of each call. The types here have them with all releases: Go
// takes the field at the lesser depth, which is controller-runtime's own, if it has one. Below 0.25
// both are zero, and no call can be exempted.
type (
	lacking struct{ deeper }
	deeper  struct{ deepest }
	deepest struct {
		EnableReadYourWritesConsistency  *bool
		DisableReadYourWritesConsistency bool
	}
)

type (
	cacheOptions struct {
		*client.CacheOptions
		lacking
	}
	getOptions struct {
		*client.GetOptions
		lacking
	}
	listOptions struct {
		*client.ListOptions
		lacking
	}
	createOptions struct {
		*client.CreateOptions
		lacking
	}
	updateOptions struct {
		*client.UpdateOptions
		lacking
	}
	patchOptions struct {
		*client.PatchOptions
		lacking
	}
	applyOptions struct {
		*client.ApplyOptions
		lacking
	}
	deleteOptions struct {
		*client.DeleteOptions
		lacking
	}
	subResourceUpdateOptions struct {
		*client.SubResourceUpdateOptions
		lacking
	}
	subResourcePatchOptions struct {
		*client.SubResourcePatchOptions
		lacking
	}
	subResourceApplyOptions struct {
		*client.SubResourceApplyOptions
		lacking
	}
)
