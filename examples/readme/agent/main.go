// Command agent prints the pods of one node as they change: those that the API server has bound to
// it, and those that the manifests of a folder declare.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/sources"
)

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
	pods := sources.New(os.Getenv("NODE_NAME"),
		sources.APIServer(client),
		sources.File(os.Getenv("MANIFESTS")))
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }() // closes Updates when it returns
	for update := range pods.Updates() {
		for _, pod := range update.Pods {
			fmt.Println(update.Op, pod.Namespace+"/"+pod.Name, "from", update.Source)
		}
	}
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
}
