// Command node-agent follows the logs of the pods of one node, and joins each line with its pod,
// its workload and its labels. It is a whole agent, to be copied.
//
// Without flags it starts a small API server of its own, with a folder of logs, and tells a story
// in which logs are rotated, a manifest is half-written, and the API server is away:
//
//	go run ./examples/node-agent
//
// With --kubeconfig, or in a cluster, it works on that. The folder deploy has a DaemonSet, the
// rights that it needs, and rules for Prometheus.
//
// follow.go starts and stops tails with the pods, tail.go reads one log, join.go writes lines,
// positions.go keeps places for a restart, references.go follows the ConfigMaps and Secrets that
// pods mention, and serve.go answers /readyz, /metrics and /statusz. docs/node-agents.md says which
// source is for which agent.
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
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
	"github.com/tributary-go/tributary/sources/static"
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
		fmt.Fprintf(stderr, "node-agent: %v\n", err)
		return exitUsage
	}
	if err := execute(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "node-agent: %v\n", err)
		return exitFailed
	}
	return exitOK
}

func execute(ctx context.Context, o options, stdout, stderr io.Writer) error {
	log := funcr.New(func(_, line string) { fmt.Fprintln(stderr, line) },
		funcr.Options{LogTimestamp: true, TimestampFormat: time.TimeOnly, Verbosity: o.verbosity})
	if o.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.length)
		defer cancel()
	}
	play := func(ctx context.Context) error { <-ctx.Done(); return nil }
	if o.config == nil {
		s, err := startStory(&o, stderr)
		if err != nil {
			return err
		}
		defer s.stop()
		play = s.play
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", o.listen, err)
	}
	log.Info("Serving", "status", "http://"+listener.Addr().String()+"/statusz")
	a, err := newAgent(o, log, stdout)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return a.run(ctx, listener, play)
}

// agent is the pods of the node, and the logs that they write.
type agent struct {
	pods       *sources.Sources
	follower   *follower
	references *references // nil without --references
	endpoints  endpoints
}

func newAgent(o options, log logr.Logger, stdout io.Writer) (*agent, error) {
	o.config.UserAgent = "node-agent"
	client, err := listwatch.NewRESTClient(o.config, corev1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	options := []sources.Option{
		sources.WithLogger(log), sources.APIServer(client),
	}
	if o.manifests != "" {
		options = append(options, sources.File(o.manifests))
	}
	if o.kubelet != "" { // for its status: the pods are known without it
		options = append(options, sources.Kubelet(o.kubelet, static.WithTokenFile(o.token), static.WithCA(o.ca)).Optional(0))
	}
	kept := positions{}
	if o.state != "" {
		options = append(options, sources.Checkpoint(o.state))
		kept.path = filepath.Join(o.state, "positions.json")
	}
	a := &agent{pods: sources.New(o.node, options...)}
	who := lookup.New(a.pods, lookup.Owners(client),
		lookup.KeepEnded(2*time.Minute)) // the last lines of a pod come late
	registry := prometheus.NewRegistry()
	counts, err := newCounts(registry)
	if err != nil {
		return nil, err
	}
	a.follower = &follower{
		root: o.logs, pods: a.pods, who: who, log: log, patience: o.patience, positions: kept,
		joiner: &joiner{who: who, out: stdout, counts: counts},
	}
	if o.references {
		if a.references, err = newReferences(o.config, a.pods, log); err != nil {
			return nil, err
		}
	}
	a.endpoints, err = newEndpoints(o.node, a.pods, a.references, registry)
	return a, err
}

// run runs all parts until ctx ends, which is no error, or until one of them ends, which is. The
// last lines are told before the pods are forgotten.
func (a *agent) run(ctx context.Context, listener net.Listener, play func(context.Context) error) error {
	working, stopWork := context.WithCancelCause(ctx)
	keeping, stopAll := context.WithCancel(context.WithoutCancel(ctx))
	var pods, work sync.WaitGroup
	start := func(group *sync.WaitGroup, ctx context.Context, what string, run func(context.Context) error) {
		group.Go(func() {
			if err := run(ctx); err != nil {
				stopWork(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	changed := make(chan struct{}, 1)
	start(&pods, keeping, "pods", a.pods.Run)
	start(&pods, keeping, "serve", func(ctx context.Context) error { return a.endpoints.serve(ctx, listener) })
	if a.references != nil {
		start(&pods, keeping, "references", a.references.run)
	}
	pods.Go(func() {
		for range a.pods.Updates() { // the look-ups have the pods already
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	})
	start(&work, working, "logs", func(ctx context.Context) error { return a.follower.run(ctx, changed) })
	start(&work, working, "the story", play)
	work.Wait()
	failure := context.Cause(working)
	stopAll()
	pods.Wait()
	if ctx.Err() != nil {
		return nil // a part that ends after ctx is no failure
	}
	return failure
}
