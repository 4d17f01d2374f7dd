// Command fake-listwatch counts the pods of a node, without the other parts of an agent. It is
// there for its test, which puts it through a disconnect, an expired version and a half-open
// connection in no time at all. Without flags it shows the same as a story of five seconds.
//
//	go test -v ./examples/fake-listwatch
//	go run ./examples/fake-listwatch
//	go run ./examples/fake-listwatch --kubeconfig ~/.kube/config --node node-1
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/listwatch"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fake-listwatch:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("fake-listwatch", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "path of a kubeconfig file; empty means that of the cluster around")
	node := flags.String("node", "", "name of the node whose pods are counted; empty, without a kubeconfig: a story")
	_ = flags.Parse(args) // it exits on an error
	switch {
	case *kubeconfig == "" && *node == "":
		klog.SetLogger(logr.Discard()) // the story says what goes wrong
		return tell(ctx, os.Stdout)
	case *node == "":
		return errors.New("give --node, the name of the node whose pods are counted")
	}
	return report(ctx, *kubeconfig, *node)
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
