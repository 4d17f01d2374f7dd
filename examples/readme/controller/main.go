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

	"github.com/tributary-go/tributary/controller"
	"github.com/tributary-go/tributary/informer"
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
	c := controller.Controller[string]{
		Reconcile: func(ctx context.Context, node string) error {
			now := pods.Snapshot() // immutable, read without a lock, O(1)
			fmt.Println(node, "has", byNode.Len(now, node), "pods at version", now.ResourceVersion())
			return nil // an error, or controller.After, has it called again
		},
		Feeds:  []controller.Feed[string]{controller.From(pods, nodesOf)},
		Copies: []controller.Runner{pods}, // calls begin when they are right
	}
	if err := c.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
