// Command index is the second step of docs/tutorial.md: it counts the pods of each app on a node.
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
	"github.com/tributary-go/tributary/store"
)

func appsOf(pod *corev1.Pod) []string { return []string{pod.Labels["app"]} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags(os.Getenv("SERVER"), os.Getenv("KUBECONFIG"))
	check(err)
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	check(err)

	ofNode := fields.OneTermEqualSelector("spec.nodeName", "node-1")
	byApp := store.NewIndex("app", appsOf)
	pods := informer.New(listwatch.FromClient[corev1.Pod](client, "pods", listwatch.Fields(ofNode)),
		informer.WithIndexes(byApp))
	_, err = pods.AddHandler(func(e informer.Event[*corev1.Pod]) {
		now := pods.Snapshot() // never changes, costs nothing
		for _, app := range appsOf(e.Object()) {
			fmt.Println(e.Type, e.Key, "and now", app, "has", byApp.Len(now, app))
		}
	})
	check(err)
	check(pods.Run(ctx)) // until Ctrl-C
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
