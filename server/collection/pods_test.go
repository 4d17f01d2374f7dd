package collection_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

func TestPodColumns(t *testing.T) {
	container := func(state corev1.ContainerState, ready bool, restarts int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: state, Ready: ready, RestartCount: restarts}}
		}
	}
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) }
	for name, row := range map[string]struct {
		pod                     *corev1.Pod
		ready, status, restarts string
	}{
		"new":     {pod("a"), "0/1", "Pending", "0"},
		"running": {pod("a", container(corev1.ContainerState{}, true, 2)), "1/1", "Running", "2"},
		"waiting": {pod("a", container(corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"},
		}, false, 7)), "0/1", "CrashLoopBackOff", "7"},
		"ended": {pod("a", container(corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled"},
		}, false, 0)), "0/1", "OOMKilled", "0"},
		"evicted":     {pod("a", func(p *corev1.Pod) { p.Status.Reason = "Evicted" }), "0/1", "Evicted", "0"},
		"terminating": {pod("a", container(corev1.ContainerState{}, true, 0), deleted), "1/1", "Terminating", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			cells := map[string]any{}
			for _, column := range builtin.Pods().View.Columns {
				cells[column.Name] = column.Value(row.pod)
			}
			require.Equal(t, map[string]any{
				"Ready": row.ready, "Status": row.status, "Restarts": row.restarts,
				"Age": "<unknown>", "IP": "<none>", "Node": "<none>",
				"Nominated Node": "<none>", "Readiness Gates": "<none>",
			}, cells)
		})
	}
	aged := pod("a")
	aged.CreationTimestamp = metav1.NewTime(time.Now().Add(-3 * time.Hour))
	require.Equal(t, "3h", apiserver.AgeColumn[*corev1.Pod]().Value(aged))
}

func TestPodGracePeriod(t *testing.T) {
	grace := builtin.Pods().Rules.GracePeriod
	bound := func(seconds *int64) *corev1.Pod {
		return pod("a", onNode("n1"), func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = seconds })
	}
	for asked, want := range map[*int64]int64{nil: 0, ptr.To[int64](0): 0, ptr.To[int64](30): 30, ptr.To[int64](-9): 1} {
		require.Equal(t, want, grace(bound(ptr.To[int64](0)), asked), "the caller's grace rules")
		require.Zero(t, grace(pod("a"), asked), "a pod that runs nowhere")
		require.Zero(t, grace(pod("a", onNode("n1"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), asked))
	}
	require.EqualValues(t, 30, grace(bound(nil), nil))
	require.EqualValues(t, 5, grace(bound(ptr.To[int64](5)), nil))

	pods := newPods(t)
	create(t, pods, pod("a", onNode("n1")))
	marked, err := pods.Delete("ns", "a", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](-9)})
	require.NoError(t, err)
	require.EqualValues(t, 1, *marked.DeletionGracePeriodSeconds, "a negative period is read as one second")
}
