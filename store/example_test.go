package store_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/store"
)

func Example() {
	byNode := store.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
	pods := store.NewIndexer(byNode)

	write := func(name, node string) {
		_ = pods.Add(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.PodSpec{NodeName: node},
		})
	}
	write("web-0", "node-1")
	write("web-1", "node-2")
	before := pods.Snapshot()
	write("web-1", "node-1")
	now := pods.Snapshot()

	fmt.Println("node-1 had", byNode.Len(before, "node-1"), "and has", byNode.Len(now, "node-1"))
	for c := range store.Diff(before, now) {
		fmt.Println(c.Key, "moved from", c.Old.Spec.NodeName, "to", c.New.Spec.NodeName)
	}
	// Output:
	// node-1 had 1 and has 2
	// default/web-1 moved from node-2 to node-1
}
