// Command agents is the three commonest agents of a node, as small as they can be. Each is a
// function in a file of its own, and docs/node-agents.md shows it.
//
//	export KUBECONFIG=… NODE_NAME=node-1
//	go run ./examples/agents workload < addresses # ip.go: the workload of each IP address
//	go run ./examples/agents logs                 # logs.go: the lines of all logs below /var/log/pods
//	go run ./examples/agents process 4711         # process.go: the pod of each process
//
// In a pod, NODE_NAME comes from the field spec.nodeName. examples/node-agent is a whole agent.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err == nil {
		err = run(ctx, config, os.Getenv("NODE_NAME"), os.Args[1:], os.Stdin, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// The folders of a node.
var (
	logs = "/var/log/pods"
	proc = "/proc"
)

func run(ctx context.Context, config *rest.Config, node string, args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("which agent: workload, logs or process?")
	}
	switch args[0] {
	case "workload":
		return follow(ctx, config, node, func(_ context.Context, who *lookup.Lookup) error { return workloads(who, in, out) })
	case "logs":
		return follow(ctx, config, node, func(ctx context.Context, who *lookup.Lookup) error { return tail(ctx, who, logs, out) })
	case "process":
		return follow(ctx, config, node, func(_ context.Context, who *lookup.Lookup) error { return processes(who, proc, args[1:], out) })
	}
	return fmt.Errorf("no agent %q: there are workload, logs and process", args[0])
}

// follow runs an agent beside the pods of its node, once they are all known.
func follow(ctx context.Context, config *rest.Config, node string, agent func(context.Context, *lookup.Lookup) error) error {
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	if err != nil {
		return err
	}
	pods := sources.New(node, sources.APIServer(client))
	who := lookup.New(pods, lookup.Owners(client), lookup.KeepEnded(5*time.Minute))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()
	go func() {
		for range pods.Updates() { // the look-ups have each of them already
		}
	}()
	select {
	case <-pods.Synced():
	case err := <-ended:
		return err
	}
	err = agent(ctx, who)
	stop()
	return errors.Join(err, <-ended)
}
