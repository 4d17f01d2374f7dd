package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// idleEach is how many pods an idle informer has.
const idleEach = 3

// serveIdle serves pods in so many namespaces, and changes none of them.
func serveIdle(namespaces int) (url string) {
	server := harness.Must(apiserver.NewServer())
	pods := apiserver.Serve(server, builtin.Pods())
	for i := range namespaces * idleEach {
		pod := kinds[0].Object(i, firstVersion+i, 0).(*corev1.Pod)
		pod.SetNamespace(fmt.Sprint(i / idleEach))
		pod.SetResourceVersion("")
		harness.Must(pods.Create(pod))
	}
	return harness.Serving{TLS: true, Streams: 1000}.Serve(server)
}
