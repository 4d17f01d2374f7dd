package main

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
	"github.com/tributary-go/tributary/internal/self"
	"github.com/tributary-go/tributary/server/relay"
	"github.com/tributary-go/tributary/server/watchcache"
)

// relaySettings are those of the process of a relay.
type relaySettings struct {
	Upstream, Token string
	Plain           bool   // without TLS
	Open            bool   // no reviews
	Node            string // whose pods are copied; empty: all that is read
	Journals        string // a folder; empty: none
	Anew            bool   // lists share no encodings
	Garbage         int    // GOGC; 0: the usual one
	Limit           int64  // GOMEMLIMIT in bytes; 0: none
	Types           int    // the release of the Go types; 0: the program's own
}

// serveRelay prints the URL of a relay and that of its control, and serves until its input ends.
func serveRelay(ctx context.Context, s relaySettings) error {
	klog.SetLogger(logr.Discard())
	if s.Garbage > 0 {
		debug.SetGCPercent(s.Garbage)
	}
	if s.Limit > 0 {
		debug.SetMemoryLimit(s.Limit)
	}
	r, err := newRelay(s, &rest.Config{Host: s.Upstream, BearerToken: s.Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		return err
	}
	controls, err := control(func() counts { return counts{} }, nil)
	if err != nil {
		return err
	}
	url, err := listen(r, !s.Plain, nil)
	if err != nil {
		return err
	}
	fmt.Println(url, controls)
	<-self.UntilInputEnds(ctx).Done()
	return nil
}

func newRelay(s relaySettings, config *rest.Config, more ...reviews.Option) (*relay.Relay, error) {
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
