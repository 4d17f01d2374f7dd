package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
)

// memory is a row of a relay with many pods.
type memory struct {
	name    string
	how     relaying
	journal bool
}

func (m memory) String() string { return m.name }

// measureMemory prints the memory of a relay that holds many pods.
func measureMemory(ctx context.Context, s harness.Settings) {
	table := harness.Table{Columns: []harness.Column{
		harness.Col("peak while it fills", "%.0f", "filled.peak/1e6"), harness.Col("at rest", "%.0f", "still.rss/1e6"),
		harness.Col("peak of a client's first list", "%.0f", "listed.peak/1e6"), harness.Col("at rest after it", "%.0f", "after.rss/1e6"),
		harness.Col("live heap", "%.0f", "live.heap/1e6"), harness.Col("CPU s to fill, for the list", "%.1f, %.1f", "filled.cpu list.cpu"),
	}}
	table.Begin(fmt.Sprintf("RSS MB of a relay with %d pods", full.memory))
	upstream := harness.Start(ctx, "upstream", cluster.Size{Pods: full.memory, Nodes: 100, Fixed: true, TLS: true})
	defer upstream.Stop()
	rows := []memory{
		{name: "pods of 8 KB", how: relaying{Open: true}}, {name: "with a journal", how: relaying{Open: true}, journal: true},
		{name: "lists share no encodings", how: relaying{Open: true, Anew: true}},
	}
	if full.limit > 0 {
		rows = append(rows, memory{name: fmt.Sprintf("GOMEMLIMIT=%dMiB", full.limit), how: relaying{Open: true, Limit: int64(full.limit) << 20}})
	}
	harness.Rows(table, rows, harness.ByTurns(s.Repeat, rows, func(m memory) harness.Figures { return m.measure(ctx, upstream) }))
}

// measure has the memory of a relay in the course of time.
func (m memory) measure(ctx context.Context, upstream harness.Process) harness.Figures {
	if m.journal {
		m.how.Journals = harness.Must(os.MkdirTemp("", "relay-"))
		defer os.RemoveAll(m.how.Journals)
	}
	r := route{upstream: upstream, relay: startRelay(ctx, upstream, m.how)}
	defer r.relay.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rest := 10 * time.Second // the runtime gives memory back
	if full.quick {
		rest = time.Second
	}
	client := harness.Client(true)
	body := watch(ctx, client, r.relay.URL(), r.version(ctx), "", "agent") // waits for the copy
	defer body.Close()
	f := harness.Figures{}
	for _, step := range []struct {
		name, how string
		act       func()
	}{
		{"filled.", harness.AsItIs, func() {}},
		{"still.", harness.ResetPeak, func() { time.Sleep(rest) }},
		{"listed.", harness.AsItIs, func() { list(ctx, client, r.relay.URL(), "?resourceVersion=0") }},
		{"after.", harness.AsItIs, func() { time.Sleep(rest) }},
		{"live.", harness.Collected, func() {}},
	} {
		step.act()
		f = f.With(step.name, r.relay.Ask(ctx, step.how))
	}
	f["list.cpu"] = f["listed.cpu"] - f["still.cpu"]
	return f
}
