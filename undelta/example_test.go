package undelta_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/undelta"
)

func Example() {
	pods := undelta.New(func(now store.Snapshot[*corev1.Pod]) {
		fmt.Println(now.Len(), "pods at version", now.ResourceVersion())
	})
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", ResourceVersion: "7"}}
	_ = pods.Replace(store.Items(web), store.At("9"))
	_ = pods.Delete(web)
	// Output:
	// 1 pods at version 9
	// 0 pods at version 9
}
