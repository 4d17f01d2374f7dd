package watchcache

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Pods is the kind of pods with the fields that the API server lets clients select by; by node, a
// list costs no more than it returns.
func Pods() Kind[*corev1.Pod] {
	return Kind[*corev1.Pod]{Version: "v1", Plural: "pods", Kind: "Pod", Fields: []Field[*corev1.Pod]{
		{Label: "spec.nodeName", Value: func(p *corev1.Pod) string { return p.Spec.NodeName }, Indexed: true},
		{Label: "status.phase", Value: func(p *corev1.Pod) string { return string(p.Status.Phase) }},
		{Label: "spec.restartPolicy", Value: func(p *corev1.Pod) string { return string(p.Spec.RestartPolicy) }},
		{Label: "spec.schedulerName", Value: func(p *corev1.Pod) string { return p.Spec.SchedulerName }},
		{Label: "spec.serviceAccountName", Value: func(p *corev1.Pod) string { return p.Spec.ServiceAccountName }},
		{Label: "status.podIP", Value: podIP},
		{Label: "status.podIPs", Value: podIP},
		{Label: "spec.host", Value: func(p *corev1.Pod) string { return p.Spec.NodeName }},
		{Label: "spec.hostNetwork", Value: func(p *corev1.Pod) string { return strconv.FormatBool(p.Spec.HostNetwork) }},
		{Label: "status.nominatedNodeName", Value: func(p *corev1.Pod) string { return p.Status.NominatedNodeName }},
	}}
}

// podIP is the first address; selectors know no other.
func podIP(p *corev1.Pod) string { return p.Status.PodIP }
