// Command pods is the first step of docs/tutorial.md: it prints the pods of a node as they change.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags(os.Getenv("SERVER"), os.Getenv("KUBECONFIG"))
	check(err)
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	check(err)

	ofNode := fields.OneTermEqualSelector("spec.nodeName", "node-1")
	pods := informer.New(listwatch.FromClient[corev1.Pod](client, "pods", listwatch.Fields(ofNode)))
	_, err = pods.AddHandler(func(e informer.Event[*corev1.Pod]) {
		fmt.Println(e.Type, e.Key)
	})
	check(err)
	check(pods.Run(ctx)) // until Ctrl-C
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
