package main

import (
	"context"
	"fmt"
	"net"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
)

// The ways of agents to the API server.
const (
	direct   = "direct"
	oneToken = "relay, one token"
	tokens   = "relay, a token each"
	open     = "relay, open"
)

// measureBill prints the bill of agents that share a node.
func measureBill(ctx context.Context, s harness.Settings) {
	table := harness.Table{Lead: "agents | ", Columns: []harness.Column{
		harness.Col("the upstream's connections, watches", "%.0f, %.0f", "connections open"),
		harness.Col("first state: lists, probes, watches, reviews, KB", "%.0f, %.0f, %.0f, %.0f, %.0f", "lists probes watches reviews sent/1e3"),
		harness.Col("an hour of changes: KB", "%.0f", "hour.sent/1e3"),
		harness.Col("CPU s of the upstream: first state, hour", "%.2f, %.2f", "cpu hour.cpu"),
		harness.Col("the relay: CPU s of both", "%.2f, %.2f", "relay.cpu hour.relay.cpu"), harness.Col("RSS MB", "%.1f", "hour.relay.rss/1e6"),
		harness.Col("heap MB", "%.1f", "live.heap/1e6"), harness.Col("goroutines", "%.0f", "hour.relay.goroutines"),
	}}
	table.Begin("agents that share a node: 110 pods of theirs of 1,100, 500 services, 10 nodes; client-go's informers")
	for _, agents := range full.agents {
		for _, way := range []string{direct, open, oneToken, tokens} {
			f := harness.Repeated(s.Repeat, way, func(way string) harness.Figures { return bill(ctx, agents, way) })
			table.Row(f, agents, way)
		}
	}
}

// bill is what agents of a node cost.
func bill(ctx context.Context, agents int, way string) harness.Figures {
	up := cluster.Size{Pods: 1100, Nodes: 10, Services: 500}
	if full.quick {
		up = cluster.Size{Pods: 20, Nodes: 2, Services: 5}
	}
	r := newRoute(ctx, up, relaying{Node: cluster.Node(0), Open: way == open})
	defer r.stop()
	at := node{Agents: agents, URL: r.relay.URL(), Name: cluster.Node(0)}
	switch way {
	case direct:
		at.URL = r.upstream.URL()
	case oneToken:
		at.Token = "agents"
	}
	before := r.both(ctx)
	p := harness.Start(ctx, "agents", at)
	defer p.Stop()
	synced := r.both(ctx)
	r.upstream.Do(ctx, "/churn?minutes=60&rate=100")
	after := r.both(ctx)
	live := r.relay.Ask(ctx, harness.Collected)
	f := cluster.Since(synced, before).With("hour.", cluster.Since(after, synced)).With("live.", live)
	if way == direct { // the relay is idle
		for _, name := range []string{"relay.cpu", "hour.relay.rss", "live.heap", "hour.relay.goroutines"} {
			delete(f, name)
		}
	}
	return f
}

// node is the task of the process of all agents of a node.
type node struct {
	Agents    int
	URL, Name string
	Token     string // of all; empty: each has its own
}

// beAgents has client-go's informers of the pods of a node, the services and the nodes.
func beAgents(ctx context.Context, n node) {
	cluster.Agents(ctx, n.Agents, func(ctx context.Context, i int, synced func()) {
		config := harness.Config(n.URL)
		config.Dial = (&net.Dialer{}).DialContext // a connection of its own
		if config.BearerToken = n.Token; n.Token == "" {
			config.BearerToken = fmt.Sprint("agent-", i)
		}
		cluster.Informers(ctx, config, n.Name, true, synced)
	}, func() []any { return []any{"synced"} })
}
