package main

import (
	"context"
	"fmt"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
)

// idle is a row of watches through a relay on which nothing happens.
type idle struct {
	protocol      string
	secure, http2 bool
	shared        bool // connections, of 250 streams
	way           string
	watchers      int
}

func (l idle) String() string { return fmt.Sprintf("%s | %d | %s", l.protocol, l.watchers, l.way) }

// measureIdle prints what an idle watch costs the relay; the rows that are direct have the same
// watches of the upstream, which is our server, too.
func measureIdle(ctx context.Context, s harness.Settings) {
	table := harness.Table{Lead: "protocol | watches | ", Columns: []harness.Column{
		harness.Col("RSS bytes each", "%.0f", "rss/watchers"), harness.Col("heap and stacks", "%.0f", "inuse/watchers"),
		harness.Col("goroutines", "%.2f", "goroutines/watchers"),
	}}
	table.Begin("idle watches of the pods of a node")
	for _, watchers := range full.idle {
		for _, l := range []idle{
			{protocol: "HTTP/1.1"}, {protocol: "HTTP/1.1 with TLS", secure: true},
			{protocol: "HTTP/2 with TLS, a connection each", secure: true, http2: true},
			{protocol: "HTTP/2 with TLS, 250 a connection", secure: true, http2: true, shared: true},
		} {
			for _, way := range []string{direct, open, tokens} {
				if l.watchers, l.way = watchers, way; way == direct && !l.secure {
					continue // the upstream has TLS alone
				}
				table.Row(harness.Repeated(s.Repeat, l, func(l idle) harness.Figures { return l.measure(ctx) }), l)
			}
		}
	}
}

// measure returns what has grown in the process that serves the watches.
func (l idle) measure(ctx context.Context) harness.Figures {
	r := newRoute(ctx, cluster.Size{Pods: 1000, Nodes: 100, Fixed: true}, relaying{Plain: !l.secure, Open: l.way == open})
	defer r.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	version := r.version(ctx)
	server := r.relay
	if l.way == direct {
		server = r.upstream
	}
	list(ctx, harness.Client(l.http2), server.URL(), "")
	before := server.Ask(ctx, harness.Collected)
	shared := harness.Client(l.http2)
	harness.AtOnce(l.watchers, 50, func(i int) {
		client := shared
		if !l.shared {
			client = harness.Client(l.http2)
		}
		watch(ctx, client, server.URL(), version, ofNode(i%100), fmt.Sprint("agent-", i))
	})
	f := server.Ask(ctx, harness.Collected).Since(before)
	f["inuse"], f["watchers"] = f["heap"]+f["stacks"], float64(l.watchers)
	return f
}
