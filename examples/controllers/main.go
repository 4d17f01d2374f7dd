// Command controllers runs one of two small controllers on the cluster of KUBECONFIG:
//
//	go run ./examples/controllers replicas   # annotates ReplicaSets with the number of their pods
//	go run ./examples/controllers buckets    # prints the buckets.example.com that it would make
//
// Each is a file to be copied: replicas.go works on typed objects and their owners, and buckets.go
// on the metadata of a custom resource, with a finalizer and a checkpoint. examples/controller is a
// whole program, with leader election and metrics.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "controllers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 || args[0] != "replicas" && args[0] != "buckets" {
		return fmt.Errorf("%q is no controller: name replicas or buckets", args)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return fmt.Errorf("KUBECONFIG cannot be used: %w", err)
	}
	if args[0] == "buckets" {
		return keepBuckets(ctx, config, printed{}, filepath.Join(os.TempDir(), "buckets.checkpoint"))
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return countPods(ctx, client)
}

// printed is a storage that makes nothing.
type printed struct{}

func (printed) Create(_ context.Context, name string) (bool, error) {
	fmt.Println("a bucket for", name)
	return true, nil
}

func (printed) Delete(_ context.Context, name string) error {
	fmt.Println("no bucket for", name)
	return nil
}
