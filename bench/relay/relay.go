package main

import (
	"context"
	"net/http"
	"runtime/debug"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

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

// serveRelay prints the URL of a relay and that of its control, and serves until its input ends.
func serveRelay(ctx context.Context, s relaying) error {
	klog.SetLogger(logr.Discard())
	if s.Limit > 0 {
		debug.SetMemoryLimit(s.Limit)
	}
	r, err := newRelay(s, &rest.Config{Host: s.Upstream, BearerToken: s.Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		return err
	}
	controls, err := harness.Serving{}.Serve(harness.Control(nil))
	if err != nil {
		return err
	}
	url, err := harness.Serving{TLS: !s.Plain}.Serve(r)
	if err == nil {
		harness.Say(ctx, url, controls)
	}
	return err
}

func newRelay(s relaying, config *rest.Config, more ...reviews.Option) (*relay.Relay, error) {
	access := func(next http.Handler) http.Handler { return relay.Open(next) }
	if !s.Open {
		judges, err := reviews.New(config, more...)
		if err != nil {
			return nil, err
		}
		access = judges.Handler
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
	return relay.New(config, access, options...)
}
