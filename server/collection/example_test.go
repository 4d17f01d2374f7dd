package collection_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
)

// A watcher follows what is written after the call.
func ExampleCollection_Watch() {
	pods, err := collection.New(builtin.Pods().Kind, builtin.Pods().Rules, watchcache.NewRevision())
	if err != nil {
		panic(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"}}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	events := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=node-1"})
	stored, _ := pods.Create(pod) // errors are left out for brevity
	bound := stored.DeepCopy()
	bound.Spec.NodeName = "node-1"
	_, _ = pods.Update(bound)
	_, _ = pods.Remove("default", "web-0")

	for event, err := range events {
		if err != nil {
			fmt.Println("list again:", err)
			return
		}
		fmt.Println(event.Type, event.Object.Name, "at version", event.ResourceVersion)
		if event.Type == watch.Deleted {
			break
		}
	}
	// Output:
	// ADDED web-0 at version 3
	// DELETED web-0 at version 4
}
