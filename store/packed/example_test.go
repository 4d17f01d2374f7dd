package packed_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// A reflector writes the store; here the program does.
func Example() {
	pods := packed.New[corev1.Pod](store.ByNamespace[*corev1.Pod]())
	for i := range 3 {
		err := pods.Add(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", i)}, Spec: corev1.PodSpec{NodeName: "node-1"},
		})
		if err != nil {
			panic(err)
		}
	}
	var own corev1.Pod // which the program may write into
	found := pods.Read("shop/web-1", &own)
	fmt.Println(found, own.Spec.NodeName)
	for _, pod := range pods.Snapshot().Sorted() {
		fmt.Println(pod.Name)
	}
	// Output:
	// true node-1
	// web-0
	// web-1
	// web-2
}
