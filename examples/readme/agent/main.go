package main

import (
	"context"
	"log"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/sources"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()
	pods := sources.New(os.Getenv("NODE_NAME"), sources.APIServer(client), sources.File(os.Getenv("MANIFESTS")))
	go func() { log.Fatal(pods.Run(context.Background())) }()
	for update := range pods.Updates() { // ADD, UPDATE, DELETE, REMOVE or RECONCILE
		log.Println(update.Op, len(update.Pods), "pods from", update.Source)
	}
}
