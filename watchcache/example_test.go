package watchcache_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/watchcache"
)

func Example() {
	server, err := watchcache.NewServer()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	pods := watchcache.Serve(server, watchcache.Pods())
	listener := httptest.NewServer(server)
	defer listener.Close()

	_, err = pods.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
	})
	if err != nil {
		panic(err)
	}

	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: listener.URL})
	list, err := client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{
		FieldSelector: "spec.nodeName=node-1",
	})
	if err != nil {
		panic(err)
	}
	for _, p := range list.Items {
		fmt.Println(p.Namespace, p.Name, "at version", p.ResourceVersion)
	}
	// Output: default web-0 at version 2
}

// A watcher follows what is written after the call.
func ExampleCollection_Watch() {
	server, err := watchcache.NewServer()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	pods := watchcache.Serve(server, watchcache.Pods())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"}}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	events := pods.Watch(ctx, watchcache.WatchOptions{
		Selection: watchcache.Selection{Fields: fields.OneTermEqualSelector("spec.nodeName", "node-1")},
	})
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
