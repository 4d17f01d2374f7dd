package builtin

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/internal/podapi"
	"github.com/tributary-go/tributary/server/collection"
)

// podRules are those of pods, with the API server's default admission: a priority, and a time for
// which a pod stays on a node that does not answer.
func podRules() collection.Rules[*corev1.Pod] {
	return collection.Rules[*corev1.Pod]{
		BuiltIn: true, UnconditionalUpdate: true, Generation: collection.CountSpec, GracePeriod: podGracePeriod, ReturnDeleted: true,
		Default: podapi.R136.Default, Complete: completePod, Validate: validatePod,
	}
}

func completePod(pod, stored *corev1.Pod) {
	tolerateLostNode(&pod.Spec)
	if pod.Spec.Priority == nil {
		pod.Spec.Priority = ptr.To[int32](0)
	}
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = ptr.To(corev1.PreemptLowerPriority)
	}
	if stored != nil {
		if pod.Status.QOSClass == "" {
			pod.Status.QOSClass = stored.Status.QOSClass
		}
		return
	}
	if pod.Status.Phase == "" {
		pod.Status.Phase = corev1.PodPending
	}
	pod.Status.QOSClass = qualityOfService(&pod.Spec)
	if len(pod.Spec.SchedulingGates) > 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now().Rfc3339Copy(),
			Reason: corev1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates",
		})
	}
}

// tolerateLostNode adds the two tolerations of five minutes that admission adds.
func tolerateLostNode(spec *corev1.PodSpec) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerated := func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		}
		if !slices.ContainsFunc(spec.Tolerations, tolerated) {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: ptr.To[int64](lostNodeSeconds),
			})
		}
	}
}

const lostNodeSeconds = 300

// qualityOfService is the class of a pod: guaranteed if each container has equal requests and
// limits of CPU and memory, best effort if none has any.
func qualityOfService(spec *corev1.PodSpec) corev1.PodQOSClass {
	containers := slices.Concat(spec.InitContainers, spec.Containers)
	guaranteed, any := true, false
	for _, c := range containers {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := positive(c.Resources.Requests, name), positive(c.Resources.Limits, name)
			any = any || request != nil || limit != nil
			guaranteed = guaranteed && request != nil && limit != nil && request.Cmp(*limit) == 0
		}
	}
	switch {
	case !any:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

func positive(list corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	if q, ok := list[name]; ok && q.Sign() > 0 {
		return &q
	}
	return nil
}

var podSpecPath = field.NewPath("spec")

func validatePod(pod, stored *corev1.Pod) field.ErrorList {
	if stored == nil {
		return podapi.R136.Validate(pod, nil)
	}
	if apiequality.Semantic.DeepEqual(pod.Spec, stored.Spec) {
		return nil // a spec that was taken once is not judged again
	}
	// The owner of the collection may have stored it without defaults.
	stored = stored.DeepCopy()
	podapi.R136.Default(stored)
	completePod(stored, stored)
	if apiequality.Semantic.DeepEqual(pod.Spec, stored.Spec) {
		return nil
	}
	return append(podapi.R136.Validate(pod, nil), checkPodChange(&pod.Spec, &stored.Spec)...)
}

// checkPodChange: of a pod's spec, images and deadlines may change, tolerations may be added, and
// the period of graceful deletion may become the least one.
func checkPodChange(next, stored *corev1.PodSpec) (errs field.ErrorList) {
	if len(next.Containers) != len(stored.Containers) {
		return append(errs, field.Forbidden(podSpecPath.Child("containers"), "pod updates may not add or remove containers"))
	}
	if len(next.InitContainers) != len(stored.InitContainers) {
		return append(errs, field.Forbidden(podSpecPath.Child("initContainers"), "pod updates may not add or remove containers"))
	}
	if deadline := deadlineFault(next.ActiveDeadlineSeconds, stored.ActiveDeadlineSeconds); deadline != "" {
		return append(errs, field.Invalid(podSpecPath.Child("activeDeadlineSeconds"), field.OmitValueType{}, deadline))
	}
	for _, toleration := range stored.Tolerations {
		kept := func(t corev1.Toleration) bool {
			t.TolerationSeconds, toleration.TolerationSeconds = nil, nil
			return t == toleration
		}
		if !slices.ContainsFunc(next.Tolerations, kept) {
			errs = append(errs, field.Forbidden(podSpecPath.Child("tolerations"), "existing toleration can not be modified except its tolerationSeconds"))
			break
		}
	}
	same := next.DeepCopy()
	same.ActiveDeadlineSeconds, same.Tolerations = stored.ActiveDeadlineSeconds, stored.Tolerations
	if len(stored.SchedulingGates) > 0 && len(next.SchedulingGates) <= len(stored.SchedulingGates) {
		same.SchedulingGates = stored.SchedulingGates
		same.NodeSelector, same.Affinity = stored.NodeSelector, stored.Affinity
	}
	if is := next.TerminationGracePeriodSeconds; is != nil && *is == 1 {
		if was := stored.TerminationGracePeriodSeconds; was != nil && *was < 0 {
			same.TerminationGracePeriodSeconds = was
		}
	}
	for i := range same.Containers {
		same.Containers[i].Image = stored.Containers[i].Image
	}
	for i := range same.InitContainers {
		same.InitContainers[i].Image = stored.InitContainers[i].Image
	}
	if !apiequality.Semantic.DeepEqual(*same, *stored) {
		errs = append(errs, field.Forbidden(podSpecPath, "pod updates may not change fields other than "+
			"the images of containers, activeDeadlineSeconds, terminationGracePeriodSeconds from a negative value to 1, "+
			"and tolerations that are added"))
	}
	return errs
}

func deadlineFault(next, stored *int64) string {
	switch {
	case stored == nil:
		return ""
	case next == nil:
		return "must not update from a positive integer to nil value"
	case *next > *stored:
		return "must be less than or equal to previous value"
	}
	return ""
}
