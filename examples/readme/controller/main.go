// Command controller prints how many pods each node has, whenever that number may have changed.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/enqueue"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

func nodesOf(p *corev1.Pod) []string { return []string{p.Spec.NodeName} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	if err != nil {
		log.Fatal(err)
	}
	byNode := store.NewIndex("node", nodesOf)
	source := listwatch.FromClient[corev1.Pod](client, "pods")
	pods := informer.New(source, informer.WithIndexes(byNode))
	queue := workqueue.NewTyped[string]()
	handler, err := pods.AddHandler(enqueue.Keys(queue, nodesOf))
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx); queue.ShutDown() }()
	if err := handler.WaitSynced(ctx); err != nil {
		log.Fatal(err) // names the cause, such as a 403
	}
	for node, shutdown := queue.Get(); !shutdown; node, shutdown = queue.Get() {
		now := pods.Snapshot() // immutable, read without a lock, O(1)
		fmt.Println(node, "has", byNode.Len(now, node), "pods at version", now.ResourceVersion())
		queue.Done(node)
	}
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
}
