package collection

import (
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/store"
)

// Bind gives a pod to the node that a Binding names, as schedulers do by the binding subresource.
// Errors: NotFound; Invalid for a target that is no node; Conflict when the pod has a node, is
// being deleted, waits for a scheduling gate, or has another UID or version than the Binding.
func Bind(pods *Collection[*corev1.Pod], binding *corev1.Binding) (*corev1.Pod, error) {
	if err := checkTarget(binding.Target); err != nil {
		return nil, err
	}
	return pods.storage.Write(store.KeyOf(binding), func(stored *corev1.Pod, found bool) (d Decision[*corev1.Pod], err error) {
		if err := pods.there(found, binding.Name); err != nil {
			return d, err
		}
		if err := bindable(stored, binding); err != nil {
			return d, pods.conflict(binding.Name, err)
		}
		next := stored.DeepCopy()
		next.Spec.NodeName = binding.Target.Name
		next.Annotations = merged(next.Annotations, binding.Annotations)
		next.Labels = merged(next.Labels, binding.Labels)
		setTrue(next, corev1.PodCondition{Type: corev1.PodScheduled})
		return Decision[*corev1.Pod]{Op: Put, Object: next}, nil
	})
}

// checkTarget returns an error without a status of its own, as the API server does.
func checkTarget(target corev1.ObjectReference) error {
	path := field.NewPath("target")
	switch {
	case target.Kind != "" && target.Kind != "Node":
		return apierror.Unclassified("%v", field.NotSupported(path.Child("kind"), target.Kind, []string{"Node", "<empty>"}))
	case target.Name == "":
		return apierror.Unclassified("%v", field.Required(path.Child("name"), ""))
	}
	return nil
}

func bindable(pod *corev1.Pod, binding *corev1.Binding) error {
	switch {
	case binding.UID != "" && binding.UID != pod.UID:
		return fmt.Errorf("the UID %s in the binding is not the stored one, %s", binding.UID, pod.UID)
	case binding.ResourceVersion != "" && binding.ResourceVersion != pod.ResourceVersion:
		return fmt.Errorf("the resource version %s in the binding is not the stored one, %s", binding.ResourceVersion, pod.ResourceVersion)
	case pod.DeletionTimestamp != nil:
		return fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return fmt.Errorf("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		return errors.New("pod has scheduling gates: it is not ready to be bound")
	}
	return nil
}

func merged(into, more map[string]string) map[string]string {
	if into == nil {
		return maps.Clone(more)
	}
	maps.Copy(into, more)
	return into
}

// setTrue sets a condition of a pod, and its time if it was not true before.
func setTrue(pod *corev1.Pod, condition corev1.PodCondition) {
	condition.Status, condition.LastTransitionTime = corev1.ConditionTrue, now()
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == condition.Type {
			if c.Status == corev1.ConditionTrue {
				condition.LastTransitionTime = c.LastTransitionTime
			}
			*c = condition
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}
