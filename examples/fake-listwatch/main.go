// Command fake-listwatch counts the pods of a node, without the other parts of an agent. It is
// there for its test, which puts it through a disconnect, an expired version and a half-open
// connection in no time at all.
//
//	go test -v ./examples/fake-listwatch
//	go run ./examples/fake-listwatch --kubeconfig ~/.kube/config --node node-1
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/listwatch"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of a kubeconfig file; empty means that of the cluster around")
	node := flag.String("node", "", "name of the node whose pods are counted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := report(ctx, *kubeconfig, *node); err != nil {
		fmt.Fprintln(os.Stderr, "fake-listwatch:", err)
		os.Exit(1)
	}
}

// report prints the count every few seconds, until ctx ends.
func report(ctx context.Context, kubeconfig, node string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the configuration: %w: name a file with --kubeconfig", err)
	}
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	if err != nil {
		return err
	}
	c := newCounter(listwatch.FromClient[corev1.Pod](client, "pods"))
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx) }()
	ticks := time.NewTicker(5 * time.Second)
	defer ticks.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-ticks.C:
			if n, err := c.count(node); err != nil {
				fmt.Printf("%s: unknown: %v\n", node, err)
			} else {
				fmt.Printf("%s: %d pods\n", node, n)
			}
		}
	}
}
