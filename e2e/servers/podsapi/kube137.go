//go:build kube137

package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/apis/pods"
)

// begin makes the PodsAPI, which asks whether the kubelet is ready.
func (k *kubelet) begin() {
	events := pods.NewBroadcaster(context.Background())
	k.api = pods.NewPodsServer(events, k.pods, k.statuses, sourcesReady{k})
	k.register = func(client chan pods.PodWatchEvent) { events.Register(klog.Background(), client) }
}

func (k *kubelet) updated(pod *corev1.Pod, status corev1.PodStatus) {
	k.api.OnPodUpdated(klog.Background(), pod, status, false)
}

func (k *kubelet) removed(pod *corev1.Pod) { k.api.OnPodRemoved(klog.Background(), pod) }

func (ended) RecordStatusUpdated(klog.Logger, *corev1.Pod) {}

// sourcesReady is as ready as the commands make it.
type sourcesReady struct{ *kubelet }

func (sourcesReady) AddSource(string) {}
func (s sourcesReady) AllReady() bool { return s.ready.Load() }
