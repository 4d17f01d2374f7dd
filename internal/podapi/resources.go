package podapi

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// defaultResources completes requests: a container's from its limits, and in 1.36 the pod's from
// its containers and its limits. From 1.37 on the API server does the latter later, after
// admission.
func (r Release) defaultResources(pod *corev1.Pod) {
	for i := range pod.Spec.Containers {
		requestLimits(&pod.Spec.Containers[i].Resources)
	}
	for i := range pod.Spec.InitContainers {
		requestLimits(&pod.Spec.InitContainers[i].Resources)
	}
	if own := pod.Spec.Resources; own != nil && r < R137 {
		limitHugePages(&pod.Spec, own)
		requestPodLevel(&pod.Spec, own)
	}
}

// requestLimits sets missing requests to the limits.
func requestLimits(r *corev1.ResourceRequirements) {
	if r.Limits == nil {
		return
	}
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	for name, limit := range r.Limits {
		setQuantity(r.Requests, name, limit)
	}
}

// limitHugePages sets the pod's limits for huge pages from its containers', since huge pages cannot
// be overcommitted.
func limitHugePages(spec *corev1.PodSpec, own *corev1.ResourceRequirements) {
	if len(own.Limits) == 0 && len(own.Requests) == 0 {
		return
	}
	for name, limit := range effective(spec, limitsOf) {
		if _, requested := own.Requests[name]; requested || !isHugePages(name) {
			continue
		}
		if own.Limits == nil {
			own.Limits = corev1.ResourceList{}
		}
		setQuantity(own.Limits, name, limit)
	}
}

// requestPodLevel completes the requests of a pod with limits: by its containers' effective need,
// else by the limit.
func requestPodLevel(spec *corev1.PodSpec, own *corev1.ResourceRequirements) {
	if len(own.Limits) == 0 {
		return
	}
	requests := own.Requests
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	for name, need := range effective(spec, requestsOf) {
		if isPodLevel(name) && isOvercommitable(name) {
			setQuantity(requests, name, need)
		}
	}
	for name, limit := range own.Limits {
		if isPodLevel(name) {
			setQuantity(requests, name, limit)
		}
	}
	if len(requests) > 0 {
		own.Requests = requests
	}
}

// roundResources rounds every amount up to a thousandth, the finest unit of the API.
func roundResources(pod *corev1.Pod) {
	for _, c := range containers(&pod.Spec) {
		roundUp(c.Resources.Limits)
		roundUp(c.Resources.Requests)
	}
	roundUp(pod.Spec.Overhead)
	roundRequirements(pod.Spec.Resources)
	roundUp(pod.Status.AllocatedResources)
	roundRequirements(pod.Status.Resources)
	for _, statuses := range [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for _, status := range statuses {
			roundUp(status.AllocatedResources)
			roundRequirements(status.Resources)
		}
	}
}

func roundRequirements(r *corev1.ResourceRequirements) {
	if r != nil {
		roundUp(r.Limits)
		roundUp(r.Requests)
	}
}

func roundUp(list corev1.ResourceList) {
	for name, amount := range list {
		amount.RoundUp(resource.Milli)
		list[name] = amount
	}
}

func limitsOf(c *corev1.Container) corev1.ResourceList   { return c.Resources.Limits }
func requestsOf(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }

// effective is the pod's greatest need at any moment. Containers and sidecars run together; each
// other init container runs alone, beside the sidecars before it.
func effective(spec *corev1.PodSpec, of func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	together, sidecars, peak := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.Containers {
		addAll(together, of(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if isSidecar(c) {
			addAll(together, of(c))
			addAll(sidecars, of(c))
			raiseAll(peak, sidecars)
			continue
		}
		alone := corev1.ResourceList{}
		addAll(alone, of(c))
		addAll(alone, sidecars)
		raiseAll(peak, alone)
	}
	raiseAll(together, peak)
	return together
}

func addAll(sum, more corev1.ResourceList) {
	for name, amount := range more {
		total, ok := sum[name]
		if !ok {
			sum[name] = amount.DeepCopy()
			continue
		}
		total.Add(amount)
		sum[name] = total
	}
}

func raiseAll(most, other corev1.ResourceList) {
	for name, amount := range other {
		if have, ok := most[name]; !ok || amount.Cmp(have) > 0 {
			most[name] = amount.DeepCopy()
		}
	}
}

func setQuantity(list corev1.ResourceList, name corev1.ResourceName, amount resource.Quantity) {
	if _, ok := list[name]; !ok {
		list[name] = amount.DeepCopy()
	}
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// isPodLevel reports whether an amount may be set for the whole pod.
func isPodLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || isHugePages(name)
}

// isNative reports whether a name belongs to Kubernetes itself.
func isNative(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

func isOvercommitable(name corev1.ResourceName) bool {
	return isNative(name) && !isHugePages(name)
}

// isExtended reports whether a device plugin may announce a name, and a quota may count it.
func isExtended(name corev1.ResourceName) bool {
	return !isNative(name) &&
		!strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}
