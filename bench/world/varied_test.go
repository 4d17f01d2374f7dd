package world_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/bench/world"
)

func TestVariedPodsDifferInMore(t *testing.T) {
	kind := world.KindOf(world.VariedPod)
	sets, environments, own := map[string]int{}, map[string]bool{}, map[string]bool{}
	const count = 1480 // ten turns of 22 ReplicaSets
	for i := range count {
		pod := kind.Object(i, i, 0).(*corev1.Pod)
		sets[pod.OwnerReferences[0].Name]++
		environments[pod.Spec.Containers[0].Env[2].Value] = true
		own[pod.Annotations["k8s.v1.cni.cncf.io/network-status"]] = true
		managers := map[string]bool{}
		for _, entry := range pod.ManagedFields {
			managers[entry.Manager] = true
		}
		require.Len(t, managers, 5)
	}
	require.Len(t, environments, 220, "one of each ReplicaSet")
	require.Len(t, own, count, "one of each pod")
	sizes := map[int]int{}
	for _, size := range sets {
		sizes[size]++
	}
	require.Equal(t, map[int]int{3: 160, 10: 50, 50: 10}, sizes)
}

func TestVariedPodsComeByKey(t *testing.T) {
	kind := world.KindOf(world.VariedPod)
	const first, count = 100, 3000
	order := kind.Order(first, count)
	var keys []string
	namespaces := map[string]map[string]bool{} // of each application
	for _, i := range order {
		pod := kind.Object(i, i, 0)
		keys = append(keys, pod.GetNamespace()+"/"+pod.GetName())
		app := pod.GetLabels()["app.kubernetes.io/name"]
		if namespaces[app] == nil {
			namespaces[app] = map[string]bool{}
		}
		namespaces[app][pod.GetNamespace()] = true
	}
	require.True(t, slices.IsSorted(keys))
	numbers := slices.Compact(slices.Sorted(slices.Values(order)))
	require.Len(t, numbers, count)
	require.Equal(t, [2]int{first, first + count - 1}, [2]int{numbers[0], numbers[count-1]})
	spread := 0
	for _, in := range namespaces {
		spread = max(spread, len(in))
	}
	require.Greater(t, spread, 2, "an application is in several namespaces")
}
