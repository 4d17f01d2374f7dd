package live_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/sources/internal/live"
)

// TestCompare: each status is newer than those above it.
func TestCompare(t *testing.T) {
	at := func(seconds int64) metav1.Time { return metav1.NewTime(time.Unix(1_800_000_000+seconds, 0)) }
	container := func(restarts int32, state corev1.ContainerState) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{RestartCount: restarts, State: state}}
	}
	started := at(1)
	order := []corev1.PodStatus{
		{},
		{StartTime: &started},
		{ContainerStatuses: container(0, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(2)}})},
		{Conditions: []corev1.PodCondition{{LastTransitionTime: at(3)}}},
		{InitContainerStatuses: container(0, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(1), FinishedAt: at(4)}})},
		{EphemeralContainerStatuses: container(1, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(4)}})},
		{ContainerStatuses: []corev1.ContainerStatus{{LastTerminationState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(5)}}}}},
		{Phase: corev1.PodSucceeded},
		{Phase: corev1.PodFailed, StartTime: &started},
	}
	for i := range order {
		require.Zero(t, live.Compare(&order[i], &order[i]), i)
		for k := range i {
			require.Positive(t, live.Compare(&order[i], &order[k]), "%d and %d", i, k)
			require.Negative(t, live.Compare(&order[k], &order[i]), "%d and %d", k, i)
		}
	}
}
