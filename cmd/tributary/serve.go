package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/status"
)

const (
	answerPatience   = 10 * time.Second // for the first answer of an etcd
	shutdownPatience = 5 * time.Second  // for requests that are being answered
	headerPatience   = 10 * time.Second // for the head of a request
	// for the next request on a connection, as on the API server
	idlePatience    = 90 * time.Second
	silencePatience = 30 * time.Second // for a client of HTTP/2 that takes nothing at all
	reportAfter     = 10 * time.Second // without a first list
)

// serve runs until ctx ends.
func serve(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	gate, err := newAccess(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gate.close()) }()
	from, err := open(o, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	heart, endHeart := from.beat(ctx, o, stderr)
	defer endHeart()
	if o.prefix, err = settlePrefix(ctx, o, from); err != nil {
		return err
	}
	resources, only, err := choose(ctx, o, from)
	if err != nil {
		return err
	}
	server, err := apiserver.NewServer()
	if err != nil {
		return err
	}
	defer server.Close()
	if err := o.welcome(server); err != nil {
		return err
	}
	if heart != nil {
		server.AddCheck("etcd", heart.check)
	}
	handler, err := withMetrics(map[string]metrics.Reporter{"etcd": server}, server.Guard, server)
	if err != nil {
		return err
	}
	keys, err := encryption(ctx, o.encryption)
	if err != nil {
		return err
	}
	s := &site{client: from.client, prefix: o.prefix, readOnly: o.readOnly(), whole: len(o.resources) == 0, server: server, encryption: keys}
	for _, r := range resources {
		made, err := r.add(s, r)
		if err != nil {
			return fmt.Errorf("serve %s: %w", r.name(), err)
		}
		made.serve()
		s.running = append(s.running, made)
	}
	if s.definitions == nil { // followed, and not served
		r, _ := findBuiltin(definitionsName)
		made, err := r.add(s, r)
		if err != nil {
			return err
		}
		s.running = append(s.running, made)
	}
	f := newFollower(s, only)
	defer f.close() // their readers have ended with the server
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	defer listener.Close() // again, as a rule
	page, err := showStatus("tributary serve", o.status, server.Guard, stderr)
	if err != nil {
		return err
	}
	defer page.close()
	page.Track("etcd", server)

	ctx, stop := context.WithCancelCause(klog.NewContext(ctx, logger(stderr, o.verbosity)))
	var ended sync.WaitGroup
	defer ended.Wait()
	defer stop(nil)
	for _, r := range s.running {
		ended.Go(func() {
			if err := r.collection.Run(ctx); err != nil {
				stop(fmt.Errorf("follow %s: %w", r.name(), err))
			}
		})
	}
	ended.Go(func() { _ = page.Run(ctx) }) // there is one
	if err := s.awaitSynced(ctx, stderr); err != nil {
		return err
	}
	if err := s.createNamespaces(); err != nil {
		return err
	}
	f.settle(ctx)
	ended.Go(func() { f.run(ctx) })
	web, begin := gate.web(handler)
	ended.Go(func() {
		if err := begin(listener); !errors.Is(err, http.ErrServerClosed) {
			stop(err)
		}
	})
	url := gate.reachable(listener)
	kubectl, err := gate.kubectl(url)
	if err != nil {
		return err
	}
	if o.insecure {
		fmt.Fprintf(stderr, "--insecure: every program and every user of this machine can read%s all objects on %s, without a token\n", s.orWrite(), url)
	}
	s.announce(stdout, from.name, url, kubectl)

	select {
	case <-ctx.Done():
	case err := <-from.failed:
		stop(fmt.Errorf("%s has ended: %w", from.name, err))
	}
	return shutDown(ctx, server, web)
}

// shutDown ends servers, in their order, once ctx has ended. A cause
// beside the usual end is an error.
func shutDown(ctx context.Context, servers ...interface {
	Shutdown(ctx context.Context) error
}) (err error) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownPatience)
	defer cancel()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = cause
	}
	for _, s := range servers {
		err = errors.Join(err, s.Shutdown(within))
	}
	return err
}

// statusPage shows all collections, on an address of its own.
type statusPage struct {
	status.Handler
	close func()
}

// showStatus serves the page, if a flag asks for it.
func showStatus(title, address string, guard func(http.Handler) http.Handler, stderr io.Writer) (*statusPage, error) {
	p := &statusPage{Handler: status.Handler{Title: title}, close: func() {}}
	if address == "" {
		return p, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--status: %w", err)
	}
	fmt.Fprintf(stderr, "status page on http://%s\n", listener.Addr())
	web := &http.Server{Handler: guard(&p.Handler), ReadHeaderTimeout: headerPatience}
	var served sync.WaitGroup
	served.Go(func() { _ = web.Serve(listener) }) // it ends by close
	p.close = func() {
		_ = web.Close() // viewers follow the page for ever
		served.Wait()
	}
	return p, nil
}

// choose finds the resources that --resource names, or all, and the names of the definitions that
// it names; nil for all.
func choose(ctx context.Context, o options, from origin) (resources []resource, only map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	present, err := defined(ctx, from.client, o.prefix)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", from.name, err)
	}
	if len(o.resources) == 0 {
		return builtins(), nil, nil
	}
	only = map[string]bool{}
	all := false
	for _, name := range o.resources {
		if strings.ContainsRune(name, filepath.Separator) || filepath.Ext(name) == ".yaml" || filepath.Ext(name) == ".yml" || filepath.Ext(name) == ".json" {
			defined, err := fromFile(name)
			if err != nil {
				return nil, nil, fmt.Errorf("--resource: %w", err)
			}
			resources = append(resources, defined...)
			continue
		}
		if present[name] {
			only[name] = true
			continue
		}
		r, ok := findBuiltin(name)
		if !ok {
			return nil, nil, fmt.Errorf("--resource %s is neither a file nor a resource that is known: "+
				"name the plural and the group, such as pods or deployments.apps", name)
		}
		all = all || r.path == definitionsPath
		resources = append(resources, r)
	}
	seen := map[schema.GroupVersionResource]bool{}
	for _, r := range resources {
		if seen[r.GroupVersionResource] {
			return nil, nil, fmt.Errorf("--resource names %s twice", r.name())
		}
		seen[r.GroupVersionResource] = true
	}
	if all {
		only = nil
	}
	return resources, only, nil
}

// awaitSynced returns once all collections have been listed, and says which objects are missing.
func (s *site) awaitSynced(ctx context.Context, stderr io.Writer) error {
	report := time.AfterFunc(reportAfter, func() {
		for _, r := range s.running {
			if status := r.collection.Status(); !status.Synced {
				fmt.Fprintf(stderr, "waiting for %s: %s\n", r.name(), status)
			}
		}
	})
	defer report.Stop()
	for _, r := range s.running {
		if err := r.collection.WaitSynced(ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
				return cause
			}
			return err
		}
		if status := r.collection.Status(); status.Skipped > 0 {
			fmt.Fprintf(stderr, "%s: %d objects cannot be served: %v\n", r.name(), status.Skipped, status.Err)
		}
	}
	return nil
}

func (s *site) announce(stdout io.Writer, from, url, kubectl string) {
	mode, example := "", kubectl+" get pods -A"
	if s.readOnly {
		mode = ", read-only"
	}
	served := s.server.Health()
	if !s.server.Serves(corev1.SchemeGroupVersion.WithResource("pods")) && len(served) > 0 {
		example = kubectl + " get " + served[0].Resource.GroupResource().String() + " -A"
	}
	fmt.Fprintf(stdout, "serving %d resources of %s on %s%s\n%s\n", len(served), from, url, mode, example)
	if !s.readOnly {
		fmt.Fprintf(stdout, "%s apply -f FILE\n", kubectl)
	}
}

// logger writes errors, and with a verbosity above zero other events.
func logger(stderr io.Writer, verbosity int) klog.Logger {
	return funcr.New(func(_, line string) { fmt.Fprintln(stderr, line) },
		funcr.Options{LogTimestamp: true, TimestampFormat: time.TimeOnly, Verbosity: verbosity - 1})
}
