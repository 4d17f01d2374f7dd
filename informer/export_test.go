package informer

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/store/packed"
)

// PackPods keeps the pods of all informers at rest, as [WithStore] does.
func PackPods() {
	given := defaults
	defaults = func() options {
		o := given()
		WithStore(packed.New[corev1.Pod])(&o)
		return o
	}
}
