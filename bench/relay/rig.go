package main

import (
	"context"
	"fmt"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
)

// server is a process that serves, and says its URL and that of its control.
type server struct{ harness.Process }

func start(ctx context.Context, role string, task any) (server, error) {
	p, err := harness.Start(ctx, role, task)
	return server{p}, err
}

func (s server) String() string { return s.URL() }

// ask asks what a server uses, and has been asked.
func (s server) ask(ctx context.Context, how string) (harness.Figures, error) {
	return harness.Call[harness.Figures](ctx, s.Words[1]+how)
}

// rig is an upstream, and a relay before it.
type rig struct{ upstream, relay server }

// newRig starts both. The relay's upstream is filled in.
func newRig(ctx context.Context, up cluster.Size, how relaying) (r rig, err error) {
	up.TLS = true
	if r.upstream, err = start(ctx, "upstream", up); err != nil {
		return r, err
	}
	if r.relay, err = r.startRelay(ctx, how); err != nil {
		r.upstream.Stop()
	}
	return r, err
}

func (r rig) startRelay(ctx context.Context, how relaying) (server, error) {
	how.Upstream, how.Token = r.upstream.URL(), "the-relay"
	return start(ctx, "relay", how)
}

func (r rig) stop() {
	r.relay.Stop()
	r.upstream.Stop()
}

// version is the upstream's newest.
func (r rig) version(ctx context.Context) (string, error) {
	return harness.Call[string](ctx, r.upstream.Words[1]+"/version")
}

// write has the upstream write, and waits until it has.
func (r rig) write(ctx context.Context, n, rate int) error {
	return harness.Do(ctx, fmt.Sprintf("%s/write?n=%d&rate=%d", r.upstream.Words[1], n, rate))
}

// both asks the upstream and, under names with a prefix, the relay.
func (r rig) both(ctx context.Context) (harness.Figures, error) {
	upstream, err := r.upstream.ask(ctx, harness.AsItIs)
	if err != nil {
		return nil, err
	}
	relay, err := r.relay.ask(ctx, harness.AsItIs)
	return upstream.With("relay.", relay), err
}
