package main

import (
	"context"
	"fmt"

	"github.com/tributary-go/tributary/internal/self"
)

// server is a process that serves, and its two URLs.
type server struct {
	*self.Process
	url, control string
}

func startServer(ctx context.Context, role string, how any) (s server, err error) {
	p, words, err := start(ctx, role, how)
	if err != nil {
		return s, err
	}
	if len(words) != 2 {
		p.Stop()
		return s, fmt.Errorf("%s says %q: it should say two URLs", role, words)
	}
	return server{p, words[0], words[1]}, nil
}

// rig is an upstream, and a relay before it.
type rig struct{ upstream, relay server }

// newRig starts both. The relay's upstream is filled in.
func newRig(ctx context.Context, up upstreamSettings, how relaySettings) (r rig, err error) {
	if r.upstream, err = startServer(ctx, "upstream", up); err != nil {
		return r, err
	}
	if r.relay, err = r.startRelay(ctx, how); err != nil {
		r.upstream.Stop()
	}
	return r, err
}

func (r rig) startRelay(ctx context.Context, how relaySettings) (server, error) {
	how.Upstream, how.Token = r.upstream.url, "the-relay"
	return startServer(ctx, "relay", how)
}

func (r rig) stop() {
	r.relay.Stop()
	r.upstream.Stop()
}

// version is the upstream's newest.
func (r rig) version(ctx context.Context) (string, error) {
	return call[string](ctx, r.upstream.control+"/version")
}

// write has the upstream write, and waits until it has.
func (r rig) write(ctx context.Context, n, rate int) error {
	_, err := call[struct{}](ctx, fmt.Sprintf("%s/write?n=%d&rate=%d", r.upstream.control, n, rate))
	return err
}
