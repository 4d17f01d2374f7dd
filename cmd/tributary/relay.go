package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/server/relay"
)

// serveRelay runs until ctx ends.
func serveRelay(ctx context.Context, o relayOptions, stdout, stderr io.Writer) (err error) {
	config, err := o.config()
	if err != nil {
		return err
	}
	gate, err := o.newAccess(o.data, func(*access) error { return nil })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gate.close()) }()
	log := logger(stderr, o.verbosity)
	site, err := newRelaySite(o, config, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.close()) }()
	if err := site.Check(ctx); err != nil {
		return fmt.Errorf("--resource and --aggregated: %w", err)
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	defer listener.Close() // again, as a rule
	page, err := showStatus("tributary relay", o.status, site.Server().Guard, stderr)
	if err != nil {
		return err
	}
	defer page.close()
	for name, reporter := range site.reporters {
		page.Track(name, reporter)
	}

	ctx, stop := context.WithCancelCause(klog.NewContext(ctx, log))
	var ended sync.WaitGroup
	defer ended.Wait()
	defer stop(nil)
	ended.Go(func() { _ = page.Run(ctx) }) // there is one
	web, begin := gate.web(site.handler)
	if o.clientCA != "" {
		web.TLSConfig.ClientAuth = tls.RequestClientCert // the access control verifies it
	}
	ended.Go(func() {
		if err := begin(listener); !errors.Is(err, http.ErrServerClosed) {
			stop(err)
		}
	})
	o.announce(stdout, stderr, site.Upstream(), gate.reachable(listener), gate)

	<-ctx.Done()
	return shutDown(ctx, site, web)
}

// relaySite is a relay, its access control and its metrics.
type relaySite struct {
	*relay.Relay
	handler   http.Handler
	reporters map[string]metrics.Reporter
	close     func() error // of the audit log
}

func newRelaySite(o relayOptions, config *rest.Config, log klog.Logger) (*relaySite, error) {
	s := &relaySite{reporters: map[string]metrics.Reporter{}, close: func() error { return nil }}
	access := relay.Open
	if !o.insecure {
		judge, err := reviews.New(config, o.reviewing()...)
		if err != nil {
			return nil, err
		}
		access, s.reporters["reviews"] = judge.Handler, judge
	}
	chosen := append(o.relaying(), relay.WithLogger(log))
	if o.audit.path != "" {
		audit := o.audit.open(log)
		chosen, s.close = append(chosen, relay.WithAudit(audit.write)), audit.close
	}
	var err error
	if s.Relay, err = relay.New(config, access, chosen...); err != nil {
		return nil, err
	}
	s.reporters["relay"] = s.Relay
	if err := o.welcome(s.Server()); err != nil {
		return nil, err
	}
	guard := func(next http.Handler) http.Handler { return s.Server().Guard(access(next)) }
	s.handler, err = withMetrics(s.reporters, guard, s.Relay)
	return s, err
}

// journals is the folder of the copies.
func (o relayOptions) journals() string {
	if o.data == "" {
		return ""
	}
	return filepath.Join(o.data, "copies")
}

func (o relayOptions) announce(stdout, stderr io.Writer, upstream, url string, gate *access) {
	copied := make([]string, 0, len(o.scopes))
	for _, s := range o.scopes {
		copied = append(copied, s.String())
	}
	if len(copied) == 0 {
		copied = append(copied, "each kind that is read")
	}
	kubectl := "kubectl --server " + url
	if gate.authorityFile != "" {
		kubectl += " --certificate-authority " + gate.authorityFile
	}
	fmt.Fprintf(stdout, "relaying %s on %s, with copies of %s\n%s get pods -A\n", upstream, url, strings.Join(copied, " and "), kubectl)
	if o.insecure {
		fmt.Fprintf(stderr, "--insecure: every program and every user of this machine can read on %s whatever the relay can read\n", url)
	}
}
