// Command writes is the third step of docs/tutorial.md: it marks the pods of a node.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/examples/tutorial/agent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags(os.Getenv("SERVER"), os.Getenv("KUBECONFIG"))
	check(err)
	a, err := agent.New(ctx, config, "node-1", os.Stdout)
	check(err)
	check(a.Pods.Run(ctx)) // until Ctrl-C
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
