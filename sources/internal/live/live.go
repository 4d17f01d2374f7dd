// Package live orders two statuses of one pod by their age.
package live

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Compare is negative if a is older than b, and positive if a is newer. A finished pod never runs
// again, so a final phase is newer than any other. Else the latest moment counts that the status
// mentions: a condition that changed, or a container that started or ended. The kubelet takes these
// times from one clock and rounds them to seconds. So zero does not mean that the two are equal.
func Compare(a, b *corev1.PodStatus) int {
	if a, b := Final(a), Final(b); a != b {
		if a {
			return 1
		}
		return -1
	}
	return cmp.Or(latest(a).Compare(latest(b)), cmp.Compare(restarts(a), restarts(b)))
}

// Final reports whether no container of the pod will run again.
func Final(s *corev1.PodStatus) bool {
	return s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed
}

// latest is the newest moment in a status.
func latest(s *corev1.PodStatus) (at time.Time) {
	note := func(t time.Time) {
		if t.After(at) {
			at = t
		}
	}
	if s.StartTime != nil {
		note(s.StartTime.Time)
	}
	for i := range s.Conditions {
		note(s.Conditions[i].LastTransitionTime.Time)
	}
	for c := range Containers(s) {
		for _, state := range []*corev1.ContainerState{&c.State, &c.LastTerminationState} {
			if state.Running != nil {
				note(state.Running.StartedAt.Time)
			}
			if state.Terminated != nil {
				note(state.Terminated.StartedAt.Time)
				note(state.Terminated.FinishedAt.Time)
			}
		}
	}
	return at
}

// restarts is the sum of all containers.
func restarts(s *corev1.PodStatus) (n int) {
	for c := range Containers(s) {
		n += int(c.RestartCount)
	}
	return n
}

// Containers yields the statuses of all containers.
func Containers(s *corev1.PodStatus) func(yield func(*corev1.ContainerStatus) bool) {
	return func(yield func(*corev1.ContainerStatus) bool) {
		for _, all := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
			for i := range all {
				if !yield(&all[i]) {
					return
				}
			}
		}
	}
}
