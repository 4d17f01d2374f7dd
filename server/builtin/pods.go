package builtin

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/watchcache"
)

// Pods describes pods as the API server has them: selectable by node and phase (by node cheaply),
// deleted gracefully once they are bound to a node, shown with readiness, status and restarts. A
// client can bind and evict them.
func Pods() apiserver.Resource[*corev1.Pod] {
	return apiserver.Resource[*corev1.Pod]{Kind: watchcache.Pods(), Rules: podRules(), View: apiserver.View[*corev1.Pod]{
		ShortNames: []string{"po"}, Categories: []string{"all"}, Subresources: []apiserver.Subresource{binding, eviction},
		Columns: []apiserver.Column[*corev1.Pod]{
			{Name: "Ready", Value: podReady},
			{Name: "Status", Value: podStatus},
			{Name: "Restarts", Value: podRestarts},
			apiserver.AgeColumn[*corev1.Pod](),
			{Name: "IP", Wide: true, Value: func(p *corev1.Pod) any { return cmp.Or(p.Status.PodIP, none) }},
			{Name: "Node", Wide: true, Value: func(p *corev1.Pod) any { return cmp.Or(p.Spec.NodeName, none) }},
			{Name: "Nominated Node", Wide: true, Value: func(p *corev1.Pod) any { return cmp.Or(p.Status.NominatedNodeName, none) }},
			{Name: "Readiness Gates", Wide: true, Value: podGates},
		},
	}}
}

// podGracePeriod is zero for a pod that runs nowhere, or no longer: no kubelet stops it.
func podGracePeriod(p *corev1.Pod, asked *int64) int64 {
	finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	period := int64(defaultGracePeriod)
	switch {
	case p.Spec.NodeName == "" || finished:
		return 0
	case asked != nil:
		period = *asked
	case p.Spec.TerminationGracePeriodSeconds != nil:
		period = *p.Spec.TerminationGracePeriodSeconds
	}
	if period < 0 {
		return 1 // the API server's reading of a negative period
	}
	return period
}

func podReady(p *corev1.Pod) any {
	ready := 0
	for _, s := range p.Status.ContainerStatuses {
		if s.Ready {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, len(p.Spec.Containers))
}

// podStatus is the most telling of: terminating, why a container waits or ended, the pod's reason,
// its phase.
func podStatus(p *corev1.Pod) any {
	text := string(p.Status.Phase)
	if p.Status.Reason != "" {
		text = p.Status.Reason
	}
	for _, s := range p.Status.ContainerStatuses {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "":
			text = s.State.Waiting.Reason
		case s.State.Terminated != nil && s.State.Terminated.Reason != "":
			text = s.State.Terminated.Reason
		}
	}
	if p.DeletionTimestamp != nil {
		text = "Terminating"
	}
	if text == "" {
		text = string(corev1.PodPending)
	}
	return text
}

func podRestarts(p *corev1.Pod) any {
	restarts := int32(0)
	for _, s := range p.Status.ContainerStatuses {
		restarts += s.RestartCount
	}
	return fmt.Sprint(restarts)
}

// podGates is how many of a pod's readiness gates are open.
func podGates(p *corev1.Pod) any {
	if len(p.Spec.ReadinessGates) == 0 {
		return none
	}
	open := 0
	for _, gate := range p.Spec.ReadinessGates {
		for _, c := range p.Status.Conditions {
			if c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue {
				open++
			}
		}
	}
	return fmt.Sprintf("%d/%d", open, len(p.Spec.ReadinessGates))
}

// defaultGracePeriod is the value that the API server's defaulting would have written into the pod,
// in seconds.
const defaultGracePeriod = 30
