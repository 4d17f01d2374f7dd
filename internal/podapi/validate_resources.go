package podapi

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// standardResources are the names without a domain that have a meaning anywhere in the API.
var standardResources = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourceStorage,
	corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage,
	corev1.ResourceRequestsStorage, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
	corev1.ResourceLimitsEphemeralStorage, corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices,
	corev1.ResourceReplicationControllers, corev1.ResourceSecrets, corev1.ResourceConfigMaps,
	corev1.ResourcePersistentVolumeClaims, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
}

// countedResources are the standard resources that are whole numbers.
var countedResources = []corev1.ResourceName{
	corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
	corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
	corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
}

// podResources checks the amounts of the whole pod, and that its containers fit.
func (v *validator) podResources() {
	if v.spec.Overhead != nil {
		v.resources(&corev1.ResourceRequirements{Limits: v.spec.Overhead}, specPath.Child("overhead"), v.containerResourceName)
	}
	own, at := v.spec.Resources, specPath.Child("resources")
	switch {
	case own == nil:
		return
	case v.isWindows():
		v.forbidden(at, "is not for Windows")
		return
	case own.Claims != nil:
		v.forbidden(at.Child("claims"), "containers have claims, not pods")
	}
	v.resources(own, at, v.podResourceName)
	for name, need := range effective(v.spec, requestsOf) {
		if request, ok := own.Requests[name]; ok && need.Cmp(request) > 0 {
			v.invalid(at.Child("requests").Key(string(name)), "is less than the containers request together")
		}
	}
	for name, need := range effective(v.spec, limitsOf) {
		if limit, ok := own.Limits[name]; ok && isHugePages(name) && need.Cmp(limit) > 0 {
			v.invalid(at.Child("limits").Key(string(name)), "is less than the containers' limits together")
		}
	}
	for i := range v.spec.Containers {
		for name, amount := range v.spec.Containers[i].Resources.Limits {
			if limit, ok := own.Limits[name]; ok && amount.Cmp(limit) > 0 {
				v.invalid(at.Child("containers").Index(i).Key(string(name)).Child("limits"), "is more than the pod's limit")
			}
		}
	}
}

// nameCheck faults names that may not have an amount at this place.
type nameCheck func(corev1.ResourceName, *field.Path)

func (v *validator) resources(r *corev1.ResourceRequirements, at *field.Path, check nameCheck) {
	hugePages, compute := false, false
	note := func(name corev1.ResourceName) {
		hugePages = hugePages || isHugePages(name)
		compute = compute || name == corev1.ResourceCPU || name == corev1.ResourceMemory
	}
	limits, requests := at.Child("limits"), at.Child("requests")
	for name, limit := range r.Limits {
		note(name)
		check(name, limits.Key(string(name)))
		v.amount(name, limit, limits.Key(string(name)))
	}
	for name, request := range r.Requests {
		note(name)
		check(name, requests.Key(string(name)))
		v.amount(name, request, requests.Key(string(name)))
		limit, limited := r.Limits[name]
		switch {
		case !limited && !isOvercommitable(name):
			v.required(limits, "a resource that cannot be overcommitted needs a limit")
		case limited && !isOvercommitable(name) && request.Cmp(limit) != 0:
			v.invalid(requests, "must be the limit of a resource that cannot be overcommitted")
		case limited && request.Cmp(limit) > 0:
			v.invalid(requests, "must not be more than the limit")
		}
	}
	if hugePages && !compute {
		v.forbidden(at, "huge pages need cpu or memory")
	}
	v.containerClaims(r.Claims, at.Child("claims"))
}

func (v *validator) amount(name corev1.ResourceName, amount resource.Quantity, at *field.Path) {
	if amount.Sign() < 0 {
		v.invalid(at, "must not be negative")
	}
	if (slices.Contains(countedResources, name) || isExtended(name)) && !v.isWhole(amount) {
		v.invalid(at, "must be an integer")
	}
	if isHugePages(name) && !v.isWholePages(name, amount) {
		v.invalid(at, "must be a multiple of the page size")
	}
}

// isWhole reports whether an amount is an integer. Until 1.37 its thousandfold must not overflow.
func (v *validator) isWhole(amount resource.Quantity) bool {
	if v.release < R138 {
		return amount.MilliValue()%1000 == 0
	}
	whole := amount.DeepCopy()
	whole.RoundUp(0)
	return whole.Cmp(amount) == 0
}

// isWholePages reports whether an amount is a multiple of its page size. A size that overflows to 0
// makes the kubelets of 1.36 and 1.37 divide by it, and crash; here it is no size.
func (v *validator) isWholePages(name corev1.ResourceName, amount resource.Quantity) bool {
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	if err != nil || size.Sign() <= 0 || !v.isWhole(size) {
		return false
	}
	if v.release >= R138 && (size.CmpInt64(math.MaxInt64) > 0 || amount.CmpInt64(math.MaxInt64) > 0) {
		return false
	}
	return size.Value() != 0 && amount.Value()%size.Value() == 0
}

// resourceName reports whether a name is well formed and known, and faults it if not.
func (v *validator) resourceName(name corev1.ResourceName, at *field.Path) bool {
	verdicts := validation.IsQualifiedName(string(name))
	v.messages(at, verdicts)
	if len(verdicts) > 0 {
		return false
	}
	if !strings.Contains(string(name), "/") && !slices.Contains(standardResources, name) &&
		!isHugePages(name) && !strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix) {
		v.invalid(at, "must be a standard resource or have a domain")
		return false
	}
	return true
}

func (v *validator) containerResourceName(name corev1.ResourceName, at *field.Path) {
	v.resourceName(name, at)
	switch {
	case !strings.Contains(string(name), "/"):
		known := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
		if !slices.Contains(known, name) && !isHugePages(name) {
			v.invalid(at, "must be a resource of containers")
		}
	case !isNative(name) && !isExtended(name):
		v.invalid(at, "must be the name of an extended resource")
	}
}

func (v *validator) podResourceName(name corev1.ResourceName, at *field.Path) {
	if v.resourceName(name, at) && !isPodLevel(name) {
		v.add(field.ErrorTypeNotSupported, at, "a pod has cpu, memory and huge pages")
	}
}

// containerClaims checks a container's use of the pod's claims: each once, whole or request by
// request.
func (v *validator) containerClaims(claims []corev1.ResourceClaim, all *field.Path) {
	whole, parts := sets.New[string](), map[string]sets.Set[string]{}
	for i, claim := range claims {
		at := all.Index(i)
		if !v.notEmpty(at, claim.Name) {
			continue
		}
		if claim.Request != "" && !whole.Has(claim.Name) {
			v.messages(at.Child("request"), validation.IsDNS1123Label(claim.Request))
		}
		used := parts[claim.Name]
		if whole.Has(claim.Name) || used.Has(claim.Request) || claim.Request == "" && len(used) > 0 {
			v.duplicate(at, "")
		}
		if claim.Request == "" {
			whole.Insert(claim.Name)
		} else if used == nil {
			parts[claim.Name] = sets.New(claim.Request)
		} else {
			used.Insert(claim.Request)
		}
		if !v.claims.Has(claim.Name) {
			v.notFound(at, "must be one of the resourceClaims of the pod")
		}
	}
}
