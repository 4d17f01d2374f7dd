package main

import (
	"context"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
)

// idle is a row of watches through a relay on which nothing happens.
type idle struct {
	protocol       string
	secure, http2  bool
	shared         bool // connections, of 250 streams
	open           bool // no reviews
	directly       bool
	watchers, pods int
}

func (l idle) access() string {
	switch {
	case l.directly:
		return "direct"
	case l.open:
		return "relay, open"
	}
	return "relay, a token each"
}

// measureIdle prints what an idle watch costs the relay; the rows that are direct have the same
// watches of the upstream, which is our server, too.
func measureIdle(ctx context.Context, s settings) error {
	fmt.Printf("\n### idle watches of the pods of a node (medians of %d)\n\n", s.repeat)
	fmt.Println("| protocol | watches | | RSS bytes each | heap and stacks | goroutines |\n|---|---|---|---|---|---|")
	for _, watchers := range s.idle {
		for _, l := range []idle{
			{protocol: "HTTP/1.1"}, {protocol: "HTTP/1.1 with TLS", secure: true},
			{protocol: "HTTP/2 with TLS, a connection each", secure: true, http2: true},
			{protocol: "HTTP/2 with TLS, 250 a connection", secure: true, http2: true, shared: true},
		} {
			if s.row != "" && l.protocol != s.row {
				continue
			}
			l.watchers, l.pods = watchers, 1000
			rows := []idle{l, l}
			rows[0].open = true
			if l.secure { // the upstream has TLS alone
				rows = append([]idle{l}, rows...)
				rows[0].directly = true
			}
			for _, row := range rows {
				var all []used
				for range s.repeat {
					u, err := row.measure(ctx, s.profile)
					if err != nil {
						return fmt.Errorf("%s, %s: %w", row.protocol, row.access(), err)
					}
					all = append(all, u)
				}
				n := float64(watchers)
				fmt.Printf("| %s | %d | %s | %.0f | %.0f | %.2f |\n", row.protocol, watchers, row.access(), of(all, func(u used) float64 { return u.RSS })/n,
					of(all, func(u used) float64 { return u.Heap + u.Stacks })/n, of(all, func(u used) float64 { return u.Goroutines })/n)
			}
		}
	}
	return nil
}

// measure returns what has grown in the process that serves the watches.
func (l idle) measure(ctx context.Context, file string) (u used, err error) {
	r, err := newRig(ctx, upstreamSettings{Pods: l.pods, Nodes: 100, Fixed: true}, relaySettings{Plain: !l.secure, Open: l.open})
	if err != nil {
		return u, err
	}
	defer r.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	version, err := r.version(ctx)
	if err != nil {
		return u, err
	}
	server := r.relay
	if l.directly {
		server = r.upstream
	}
	if _, err := list(ctx, &http.Client{Transport: transport(l.http2)}, server.url, ""); err != nil {
		return u, err
	}
	before, err := ask(ctx, server.control, collected)
	if err != nil {
		return u, err
	}
	shared := &http.Client{Transport: transport(l.http2)}
	var starts errgroup.Group
	starts.SetLimit(50)
	for i := range l.watchers {
		starts.Go(func() error {
			client := shared
			if !l.shared {
				client = &http.Client{Transport: transport(l.http2)}
			}
			_, err := watch(ctx, client, server.url, version, ofNode(i%100), fmt.Sprint("agent-", i))
			return err
		})
	}
	if err := starts.Wait(); err != nil {
		return u, err
	}
	after, err := ask(ctx, server.control, collected)
	if err == nil {
		err = profile(ctx, server.control, file)
	}
	return after.grown(before), err
}
