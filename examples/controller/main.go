// Command controller is a whole controller, to be copied: it labels each node with the number of
// its pods.
//
// Without flags it starts a small API server of its own, with nodes, and a story in which pods come
// and go:
//
//	go run ./examples/controller
//
// With --kubeconfig, or in a cluster, it works on that: it watches pods and nodes, elects a leader
// by a lease, and applies the label tributary.example/pods to nodes. It needs list and watch of
// pods and nodes, patch of nodes, and get, create and update of leases in its --namespace.
//
// controller.go is the controller, and serve.go answers /readyz, /metrics and /statusz, a page to
// look at. Package controller/leader decides which replica works.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process: it returns the exit code, and nothing that it started is left.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "controller: %v\n", err)
		return exitUsage
	}
	if err := execute(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "controller: %v\n", err)
		return exitFailed
	}
	return exitOK
}

func execute(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	log := funcr.New(func(_, line string) { fmt.Fprintln(stderr, line) },
		funcr.Options{LogTimestamp: true, TimestampFormat: time.TimeOnly, Verbosity: o.verbosity})
	ctx = logr.NewContext(ctx, log) // for client-go
	if o.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.length)
		defer cancel()
	}
	play := func(context.Context) error { return nil }
	if o.config == nil {
		s, err := startStory(o.beat, stderr)
		if err != nil {
			return err
		}
		defer s.stop()
		o.config, play = rest.CopyConfig(s.config), s.play
	}
	o.config.UserAgent = fieldManager
	o.config.Wrap(o.election.Gate) // what this replica writes while it does not lead is refused
	client, err := kubernetes.NewForConfig(o.config)
	if err != nil {
		return err
	}
	o.election.Client = client.CoordinationV1()
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", o.listen, err)
	}
	registry := prometheus.NewRegistry()
	p, err := newProgram(client, registry, stdout)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return keep(ctx, o, p, listener, registry, play)
}

// keep runs all parts until ctx ends, which is no error, or until one of them ends, which is.
//
// It stops in the reverse of the order in which it starts: the work in hand is finished and the
// lease given back while the copies are still being kept, since the work reads them.
func keep(ctx context.Context, o *options, p *program, listener net.Listener, registry *prometheus.Registry, play func(context.Context) error) error {
	working, stopWork := context.WithCancelCause(ctx)
	keeping, stopAll := context.WithCancel(context.WithoutCancel(ctx))
	var copies, work sync.WaitGroup
	start := func(group *sync.WaitGroup, ctx context.Context, what string, run func(context.Context) error) {
		group.Go(func() {
			if err := run(ctx); err != nil {
				stopWork(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	start(&copies, keeping, "pods", p.pods.Run)
	start(&copies, keeping, "nodes", p.nodes.Run)
	start(&copies, keeping, "status", p.page.Run)
	start(&copies, keeping, "serve", func(ctx context.Context) error {
		return serve(ctx, listener, handler(p, registry), klog.FromContext(ctx))
	})
	start(&work, working, "the story", play)
	start(&work, working, "leader election", func(ctx context.Context) error {
		return o.election.Run(ctx, p.work)
	})
	work.Wait()
	failure := context.Cause(working)
	stopAll()
	copies.Wait()
	p.forget()
	if ctx.Err() != nil {
		return nil // a part that ends after ctx is no failure
	}
	return failure
}
