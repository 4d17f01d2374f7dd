//go:build !kube137

package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/apis/pods"
)

// begin makes the PodsAPI, which does not ask whether the kubelet is ready.
func (k *kubelet) begin() {
	events := pods.NewBroadcaster()
	k.api = pods.NewPodsServer(events, k.pods, k.statuses)
	k.register = events.Register
}

func (k *kubelet) updated(pod *corev1.Pod, status corev1.PodStatus) {
	k.api.OnPodUpdated(pod, status, false)
}

func (k *kubelet) removed(pod *corev1.Pod) { k.api.OnPodRemoved(pod) }

func (ended) RecordStatusUpdated(*corev1.Pod) {}
