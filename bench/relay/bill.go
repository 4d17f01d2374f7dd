package main

import (
	"context"
	"fmt"
)

// The ways of agents to the API server.
const (
	direct   = "direct"
	oneToken = "relay, one token"
	tokens   = "relay, a token each"
	open     = "relay, open"
)

// measureBill prints the bill of agents that share a node.
func measureBill(ctx context.Context, s settings) error {
	fmt.Printf("\n### agents that share a node: 110 pods of theirs of 1,100, 500 services, 10 nodes; client-go's informers (medians of %d)\n\n", s.repeat)
	fmt.Println("| agents | | the upstream's connections, watches | first state: lists, probes, watches, reviews, KB | an hour of changes: KB | CPU s of the upstream: first state, hour | the relay: CPU s of both | RSS MB | heap MB | goroutines |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	for _, agents := range s.agents {
		for _, way := range []string{direct, open, oneToken, tokens} {
			if s.row != "" && s.row != way {
				continue
			}
			var all []bill
			for range s.repeat {
				b, err := billOf(ctx, s, agents, way)
				if err != nil {
					return fmt.Errorf("%d agents, %s: %w", agents, way, err)
				}
				all = append(all, b)
			}
			b := all[0]
			count := func(figure func(bill) int64) int64 { return of(all, figure) }
			figure := func(figure func(bill) float64) float64 { return of(all, figure) }
			relay := "– | – | – | –"
			if way != direct {
				relay = fmt.Sprintf("%.2f, %.2f | %.1f | %.1f | %.0f", figure(func(b bill) float64 { return b.relayFirst.CPU }), figure(func(b bill) float64 { return b.relayHour.CPU }),
					figure(func(b bill) float64 { return b.relayHour.RSS / 1e6 }), figure(func(b bill) float64 { return b.relayLive.Heap / 1e6 }), figure(func(b bill) float64 { return b.relayHour.Goroutines }))
			}
			fmt.Printf("| %d | %s | %d, %d | %d, %d, %d, %d, %.0f | %.0f | %.2f, %.2f | %s |\n", agents, way,
				count(func(b bill) int64 { return b.first.Connections }), b.first.Open, b.first.Lists, b.first.Probes, b.first.Watches, b.first.Reviews,
				figure(func(b bill) float64 { return float64(b.first.Bytes) / 1e3 }), figure(func(b bill) float64 { return float64(b.hour.Bytes) / 1e3 }),
				figure(func(b bill) float64 { return b.first.CPU }), figure(func(b bill) float64 { return b.hour.CPU }), relay)
		}
	}
	return nil
}

// bill is what agents of a node cost.
type bill struct {
	first, hour                      used // of the upstream
	relayFirst, relayHour, relayLive used
}

func billOf(ctx context.Context, s settings, agents int, way string) (b bill, err error) {
	up := upstreamSettings{Pods: 1100, Nodes: 10, Services: 500}
	if s.quick {
		up = upstreamSettings{Pods: 20, Nodes: 2, Services: 5}
	}
	how := relaySettings{Node: nodeName(0), Open: way == open}
	r, err := newRig(ctx, up, how)
	if err != nil {
		return b, err
	}
	defer r.stop()
	at := agentsSettings{Agents: agents, URL: r.upstream.url, Node: nodeName(0)}
	if way != direct {
		at.URL = r.relay.url
	}
	if way == oneToken {
		at.Token = "agents"
	}
	before, relayBefore, err := r.both(ctx)
	if err != nil {
		return b, err
	}
	p, _, err := start(ctx, "agents", at)
	if err != nil {
		return b, err
	}
	defer p.Stop()
	if _, err := p.Line(); err != nil {
		return b, err
	}
	synced, relaySynced, err := r.both(ctx)
	if err != nil {
		return b, err
	}
	const rate = 100 // changes a second
	if _, err := call[struct{}](ctx, fmt.Sprintf("%s/live?rate=%d", r.upstream.control, rate)); err != nil {
		return b, err
	}
	after, relayAfter, err := r.both(ctx)
	if err != nil {
		return b, err
	}
	b = bill{first: synced.since(before), hour: after.since(synced), relayFirst: relaySynced.since(relayBefore), relayHour: relayAfter.since(relaySynced)}
	b.relayLive, err = ask(ctx, r.relay.control, collected)
	return b, err
}
