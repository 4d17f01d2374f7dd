package main

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/cmd/tributary/reviews"
	"github.com/tributary-go/tributary/server/relay"
	"github.com/tributary-go/tributary/server/watchcache"
)

// relaying is the task of the process of a relay.
type relaying struct {
	Upstream, Token string
	Plain           bool   // without TLS
	Open            bool   // no reviews
	Node            string // whose pods are copied; empty: all that is read
	Journals        string // a folder; empty: none
	Anew            bool   // lists share no encodings
	Limit           int64  // GOMEMLIMIT in bytes; 0: none
	Types           int    // the release of the Go types; 0: the program's own
}

// serveRelay is the process of a relay.
func serveRelay(ctx context.Context, s relaying) {
	klog.SetLogger(logr.Discard())
	if s.Limit > 0 {
		debug.SetMemoryLimit(s.Limit)
	}
	config := &rest.Config{Host: s.Upstream, BearerToken: s.Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	harness.Serving{TLS: !s.Plain}.Say(ctx, newRelay(s, config), harness.Control(nil, nil))
}

func newRelay(s relaying, config *rest.Config, more ...reviews.Option) *relay.Relay {
	access := func(next http.Handler) http.Handler { return relay.Open(next) }
	if !s.Open {
		access = harness.Must(reviews.New(config, more...)).Handler
	}
	options := []relay.Option{relay.WithLogger(logr.Discard())}
	if s.Types > 0 {
		options = append(options, relay.WithTypesOf(s.Types))
	}
	if s.Anew {
		options = append(options, relay.WithCache(watchcache.WithListBytes(0)))
	}
	if s.Journals != "" {
		options = append(options, relay.WithJournals(s.Journals))
	}
	if s.Node != "" {
		options = append(options, relay.Only(
			relay.Scope{Resource: schema.GroupResource{Resource: "pods"}, Fields: fields.OneTermEqualSelector("spec.nodeName", s.Node)},
			relay.Scope{Resource: schema.GroupResource{Resource: "services"}},
			relay.Scope{Resource: schema.GroupResource{Resource: "nodes"}},
		))
	}
	return harness.Must(relay.New(config, access, options...))
}

// route is an upstream, and a relay before it.
type route struct{ upstream, relay harness.Process }

// newRoute starts both.
func newRoute(ctx context.Context, up cluster.Size, how relaying) route {
	up.TLS = true
	r := route{upstream: harness.Start(ctx, "upstream", up)}
	if err := harness.Try(func() { r.relay = startRelay(ctx, r.upstream, how) }); err != nil {
		r.upstream.Stop()
		harness.Check(err)
	}
	return r
}

func startRelay(ctx context.Context, upstream harness.Process, how relaying) harness.Process {
	how.Upstream, how.Token = upstream.URL(), "the-relay"
	return harness.Start(ctx, "relay", how)
}

func (r route) stop() {
	r.relay.Stop()
	r.upstream.Stop()
}

// version is the upstream's newest.
func (r route) version(ctx context.Context) string {
	return harness.Call[string](ctx, r.upstream.Control()+"/version")
}

// write has the upstream write, and waits until the writes have arrived.
func (r route) write(ctx context.Context, n, rate int) {
	r.upstream.Do(ctx, "/write?n=%d&rate=%d", n, rate)
	time.Sleep(500 * time.Millisecond)
}

// both asks the upstream and, under names with a prefix, the relay.
func (r route) both(ctx context.Context) harness.Figures {
	return r.upstream.Ask(ctx, harness.AsItIs).With("relay.", r.relay.Ask(ctx, harness.AsItIs))
}
