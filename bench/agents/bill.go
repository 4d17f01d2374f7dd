package main

import (
	"context"
	"fmt"

	"github.com/tributary-go/tributary/internal/self"
)

// measureBill measures agents that share a node: the cost of their servers, and their memory.
// Each is a process of its own, as agents of different vendors are.
func measureBill(ctx context.Context, s settings) error {
	s.Agents, s.PerNode = 1, 110
	fmt.Printf("\n### agents that share a node of 110 pods\n\n")
	fmt.Println("| | agents | watches | first state: requests, KB | an hour of churn: KB, CPU s of the server | RSS MiB of one, of all | of it anonymous |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, library := range []string{empty, tributary, kubelet, clientGo} {
		for _, n := range s.Share {
			b, err := s.bill(ctx, library, n)
			if err != nil {
				return fmt.Errorf("%d of %s: %w", n, library, err)
			}
			hour := "–" // a poll costs the same each time
			if library != kubelet {
				hour = fmt.Sprintf("%.0f, %.2f", float64(b.hour.Bytes)/1000, b.hour.CPU)
			}
			fmt.Printf("| %s | %d | %d | %d, %.0f | %s | %.1f, %.0f | %.1f, %.0f |\n", library, n, b.first.Watches,
				b.first.Requests, float64(b.first.Bytes)/1000, hour, median(b.rss), sum(b.rss), median(b.anonymous), sum(b.anonymous))
		}
	}
	return nil
}

// bill is the cost of some agents of one node.
type bill struct {
	first, hour    figures
	rss, anonymous []float64 // MiB, of each agent
}

func (s settings) bill(ctx context.Context, library string, n int) (b bill, err error) {
	server, url, err := s.serve(ctx)
	if err != nil {
		return b, err
	}
	defer server.Stop()
	before, err := post[figures](ctx, url+"/figures")
	if err != nil {
		return b, err
	}
	agents := make([]*self.Process, n)
	for i := range agents {
		if agents[i], err = s.start(ctx, "neighbour", library, url); err != nil {
			return b, err
		}
		defer agents[i].Stop()
	}
	for _, agent := range agents {
		line, err := agent.Line()
		if err != nil {
			return b, err
		}
		var rss, anonymous float64
		if _, err := fmt.Sscan(line, &rss, &anonymous); err != nil {
			return b, err
		}
		b.rss, b.anonymous = append(b.rss, rss/(1<<20)), append(b.anonymous, anonymous/(1<<20))
	}
	synced, err := post[figures](ctx, url+"/figures")
	if err != nil {
		return b, err
	}
	b.first = synced.since(before)
	if polls := b.first.Kubelet; polls > 0 { // the first of each agent is its first state
		b.first.Requests, b.first.Bytes = int64(n), b.first.Bytes/polls*int64(n)
		return b, nil
	}
	after, err := post[figures](ctx, url+"/churn")
	b.hour = after.since(synced)
	return b, err
}

func sum(values []float64) (all float64) {
	for _, value := range values {
		all += value
	}
	return all
}
