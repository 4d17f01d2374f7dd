// Command kubelet-pods prints the pods of one node as they change, wherever they are declared: in
// the API server, in manifest files, and behind a manifest URL.
//
// Without flags it starts a small API server of its own, with pods, manifests and a story in which
// all of them change:
//
//	go run ./examples/kubelet-pods
//
// With --kubeconfig, --manifests or --manifest-url it watches these sources, and nothing else. In a
// cluster the API server is found without a flag.
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
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/sources"
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
		fmt.Fprintf(stderr, "kubelet-pods: %v\n", err)
		return exitUsage
	}
	return execute(ctx, o, stdout, stderr)
}

func execute(ctx context.Context, o options, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintf(stderr, "kubelet-pods: %v\n", err)
		return exitFailed
	}
	listener, err := o.listen()
	if err != nil {
		return fail(err)
	}
	if listener != nil {
		defer listener.Close()
	}
	teller := teller{stderr, o.paint(stderr)}
	log := funcr.New(func(_, line string) { fmt.Fprintln(stderr, line) },
		funcr.Options{LogTimestamp: true, TimestampFormat: time.TimeOnly, Verbosity: o.verbosity})
	if o.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.length)
		defer cancel()
	}
	play := func(context.Context) {}
	if o.embedded() {
		s, err := startStory(o, teller)
		if err != nil {
			return fail(err)
		}
		defer s.stop()
		if !o.set["v"] {
			log = quietLog{teller}.logger()
		}
		o.client, o.manifests, o.url, play = s.client, s.folder, s.url, s.play
		if !o.set["http-check-frequency"] {
			o.httpEvery = o.beat / 2
		}
	}
	if listener != nil {
		teller.tell("status: http://%s", listener.Addr())
	}
	if err := follow(ctx, o, play, output{stdout: stdout, log: log, page: listener}); err != nil {
		return fail(err)
	}
	return exitOK
}

// output is where things go: updates to stdout, their state to the page, everything else to the
// log.
type output struct {
	stdout io.Writer
	log    logr.Logger
	page   net.Listener // nil: no page
}

// follow prints updates until ctx ends. play runs beside it.
func follow(ctx context.Context, o options, play func(context.Context), out output) error {
	pods := sources.New(o.node, o.sources(out.log)...)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shown := showStatus(ctx, o, out.page, pods)
	ended, played := make(chan error, 1), make(chan struct{})
	go func() { ended <- pods.Run(ctx) }()
	go func() {
		defer close(played)
		play(ctx)
	}()
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		reportStatus(ctx, pods, out.log)
	}()
	printer := newPrinter(out.stdout, o.paint(out.stdout), o.json, func(source string) error { return problemOf(pods, source) })
	var failed error
	for update := range pods.Updates() {
		if failed == nil {
			if failed = printer.print(update); failed != nil {
				cancel() // there is no reader: stop, and let the sources end
			}
		}
	}
	err := errors.Join(failed, <-ended)
	cancel()
	err = errors.Join(err, <-shown)
	<-played
	<-reported
	return err
}

// statusEvery is how often the sources' health is logged at level 2.
const statusEvery = 5 * time.Second

func reportStatus(ctx context.Context, pods *sources.Sources, log logr.Logger) {
	ticker := time.NewTicker(statusEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, s := range pods.Status() {
			log.V(2).Info("Status", "source", s.Source, "seen", s.Seen, "pods", s.Pods, "mode", s.Mode,
				"lastContact", s.LastContact.Format(time.TimeOnly), "restored", s.Restored, "skipped", s.Skipped,
				"safeToPrune", pods.SafeToPrune(s.Source), "errors", s.Errors, "problems", texts(s.Problems), "warnings", texts(s.Warnings))
		}
	}
}

// problemOf is the first present problem of a source, or nil.
func problemOf(pods *sources.Sources, source string) error {
	for _, s := range pods.Status() {
		if s.Source == source && len(s.Problems) > 0 {
			return s.Problems[0]
		}
	}
	return nil
}

func texts(errs []error) []string {
	all := []string{}
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

// sources are the sources that the flags, or the story, name.
func (o options) sources(log logr.Logger) []sources.Option {
	list := []sources.Option{sources.WithLogger(log)}
	if o.kubelet {
		list = append(list, sources.LikeKubelet())
	}
	if o.keep != "" {
		list = append(list, sources.Checkpoint(o.keep))
	}
	if o.client != nil {
		list = append(list, sources.APIServer(o.client))
	}
	if o.manifests != "" {
		list = append(list, sources.File(o.manifests, static.WithInterval(o.fileEvery)))
	}
	if o.url != "" {
		url := []static.Option{static.WithInterval(o.httpEvery)}
		for _, h := range o.headers {
			url = append(url, static.WithHeader(h.name, h.value))
		}
		list = append(list, sources.HTTP(o.url, url...))
	}
	return list
}

// apiClient makes the client of a real API server: of a kubeconfig, or of the cluster that this
// runs in. It is nil where there is neither.
func apiClient(kubeconfig string) (rest.Interface, error) {
	var config *rest.Config
	var err error
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig %s cannot be used: %w", kubeconfig, err)
		}
	} else if config, err = rest.InClusterConfig(); errors.Is(err, rest.ErrNotInCluster) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("the cluster's configuration cannot be used: %w", err)
	}
	config.UserAgent = "kubelet-pods"
	return listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
}
