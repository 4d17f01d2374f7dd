package podapi

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validator holds the state that the checks of one pod share.
type validator struct {
	faults
	release Release
	pod     *corev1.Pod
	spec    *corev1.PodSpec
	newer   Newer
	// only volumes without a fault, as the server resolves mounts
	volumes map[string]*corev1.VolumeSource
	claims  sets.Set[string]
}

// Validate checks a defaulted pod as the server checks a pod to be created. newer is from NewerOf.
// It does not modify the pod. The errors hold no values, come in no particular order, and are at
// most 256.
func (r Release) Validate(pod *corev1.Pod, newer Newer) field.ErrorList {
	v := &validator{
		release: r, pod: pod, spec: &pod.Spec, newer: newer,
		volumes: map[string]*corev1.VolumeSource{}, claims: sets.New[string](),
	}
	v.metadata()
	v.allVolumes()
	v.tokenVolumes()
	v.resourceClaims()
	v.allContainers()
	v.podResources()
	v.lifetime()
	v.identity()
	v.network()
	v.scheduling()
	v.podSecurity()
	v.operatingSystem()
	v.generated()
	return v.list
}

// lifetime checks how long a pod runs, and how it ends.
func (v *validator) lifetime() {
	setOneOf(&v.faults, specPath.Child("restartPolicy"), v.spec.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	if deadline := v.spec.ActiveDeadlineSeconds; deadline != nil && (*deadline < 1 || *deadline > math.MaxInt32) {
		v.invalid(specPath.Child("activeDeadlineSeconds"), utilvalidation.InclusiveRangeError(1, math.MaxInt32))
	}
	for i, gate := range v.spec.ReadinessGates {
		v.messages(specPath.Child("readinessGates").Index(i).Child("conditionType"),
			utilvalidation.IsQualifiedName(string(gate.ConditionType)))
	}
}

// identity checks the names of other objects in the spec.
func (v *validator) identity() {
	objectName := func(name, value string) {
		if value != "" {
			v.messages(specPath.Child(name), validation.NameIsDNSSubdomain(value, false))
		}
	}
	objectName("serviceAccountName", v.spec.ServiceAccountName)
	objectName("nodeName", v.spec.NodeName)
	objectName("priorityClassName", v.spec.PriorityClassName)
	if class := v.spec.RuntimeClassName; class != nil {
		v.messages(specPath.Child("runtimeClassName"), validation.NameIsDNSSubdomain(*class, false))
	}
	v.adopt(metav1validation.ValidateLabels(v.spec.NodeSelector, specPath.Child("nodeSelector")))
}

// resourceClaims checks the pod's claims, and collects their names for the containers.
func (v *validator) resourceClaims() {
	_, mirror := v.pod.Annotations[corev1.MirrorPodAnnotationKey]
	seen := sets.New[string]()
	for i, claim := range v.spec.ResourceClaims {
		if claim.Name != "" {
			v.claims.Insert(claim.Name)
		}
		if mirror {
			v.forbidden(field.NewPath(""), "a static pod cannot have resource claims")
			continue
		}
		at := specPath.Child("resourceClaims").Index(i)
		switch name := at.Child("name"); {
		case !v.notEmpty(name, claim.Name):
		case seen.Has(claim.Name):
			v.duplicate(name, "")
		default:
			seen.Insert(claim.Name)
			v.messages(name, utilvalidation.IsDNS1123Label(claim.Name))
		}
		if (claim.ResourceClaimName != nil) == (claim.ResourceClaimTemplateName != nil) {
			v.invalid(at, "needs one of resourceClaimName and resourceClaimTemplateName")
		}
		if name := claim.ResourceClaimName; name != nil {
			v.messages(at.Child("resourceClaimName"), validation.NameIsDNSSubdomain(*name, false))
		}
		if name := claim.ResourceClaimTemplateName; name != nil {
			v.messages(at.Child("resourceClaimTemplateName"), validation.NameIsDNSSubdomain(*name, false))
		}
	}
}
