package sources

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/store"
)

// BenchmarkOperation is the comparison of two states of a pod that share no memory, as those of a
// manifest do.
func BenchmarkOperation(b *testing.B) {
	old := &corev1.Pod{}
	old.Name, old.Namespace, old.UID = "a", "ns", "u"
	for i := range 3 {
		container := corev1.Container{Name: fmt.Sprint("c", i), Image: "image"}
		for range 20 {
			container.Env = append(container.Env, corev1.EnvVar{Name: "n", Value: "v"})
		}
		old.Spec.Containers = append(old.Spec.Containers, container)
	}
	status, spec := old.DeepCopy(), old.DeepCopy()
	status.Status.Phase = corev1.PodRunning
	spec.Spec.Containers[2].Image = "other"
	for _, row := range []struct {
		want Op
		now  *corev1.Pod
	}{{Reconcile, status}, {Update, spec}, {"", old.DeepCopy()}} {
		b.Run("op="+string(row.want), func(b *testing.B) {
			b.ReportAllocs()
			change := store.Change[*corev1.Pod]{Key: "ns/a", Old: old, New: row.now}
			for b.Loop() {
				if got := operation(change); got != row.want {
					b.Fatal(got)
				}
			}
		})
	}
}
