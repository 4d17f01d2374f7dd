package kubelet_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/tributary-go/tributary/e2e/cluster"
)

// TestPodsAPIFreshness measures our source with an interval of a second, for 110 pods of 8 KB: the
// time from a change to the update that tells it, and the processor time of lists.
func TestPodsAPIFreshness(t *testing.T) {
	k := startPodsAPI(t, cluster.Kube137)
	for i := range 110 {
		k.put(sizedPod(fmt.Sprint("pod-", i), "-0"))
	}
	kubelet, size := k.costOfAList()
	k.follow()
	k.update()
	const changes = 20
	var labels, statuses []time.Duration
	agent, began := cluster.CPUOf(t, os.Getpid()), time.Now()
	for i := range changes {
		label := fmt.Sprint("-", i+1)
		// Labels change at any time of an interval.
		<-time.After(time.Duration(i*137) * time.Millisecond % time.Second)
		labels = append(labels, k.delay(func() { k.put(sizedPod("pod-0", label)) },
			func(pod *corev1.Pod) bool { return pod.Labels["label"] == label }))
	}
	agent, took := cluster.CPUOf(t, os.Getpid())-agent, time.Since(began)
	for second := range int64(changes) {
		statuses = append(statuses, k.delay(func() { k.started("pod-1", second+1) },
			func(pod *corev1.Pod) bool { return startOf(pod) == second+1 }))
	}
	slices.Sort(labels)
	slices.Sort(statuses)
	ms := func(all []time.Duration) string {
		return fmt.Sprintf("%.0f, %.0f", all[len(all)/2].Seconds()*1000, all[len(all)-1].Seconds()*1000)
	}
	t.Logf("median, longest ms: of a label %s, of a status %s", ms(labels), ms(statuses))
	t.Logf("a list of %d bytes: %s of the kubelet's CPU; the agent: %.1f ms of CPU a second", size, kubelet, agent.Seconds()*1000/took.Seconds())
	require.Less(t, labels[len(labels)/2], 5*time.Second, "lists come every second")
}

// costOfAList is the kubelet's processor time for a list, and the size of a list in bytes.
func (k *podsAPI) costOfAList() (cost time.Duration, size int) {
	k.t.Helper()
	const lists = 300
	paced := time.NewTicker(20 * time.Millisecond) // half of what the kubelet permits
	defer paced.Stop()
	before := cluster.CPUOf(k.t, k.pid)
	for range lists {
		<-paced.C
		answer, err := k.plain.ListPods(k.t.Context(), &api.ListPodsRequest{})
		require.NoError(k.t, err)
		size = 0
		for _, pod := range answer.Pods {
			size += len(pod)
		}
	}
	return (cluster.CPUOf(k.t, k.pid) - before) / lists, size
}

// delay is the time from a change to the update that tells it.
func (k *podsAPI) delay(change func(), told func(*corev1.Pod) bool) time.Duration {
	k.t.Helper()
	began := time.Now()
	change()
	for !slices.ContainsFunc(k.update().Pods, told) {
	}
	return time.Since(began)
}

// sizedPod has the size that pods often have: 8 KB.
func sizedPod(name, label string) *corev1.Pod {
	pod := runningPod(name, label)
	main := &pod.Spec.Containers[0]
	for i := range 80 {
		main.Env = append(main.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", i), Value: strings.Repeat("v", 80)})
	}
	return pod
}
