package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/rig"
)

// memory is a row of a relay with many pods.
type memory struct {
	name    string
	how     relaying
	journal bool
}

func (m memory) String() string { return m.name }

// measureMemory prints the memory of a relay that holds many pods.
func measureMemory(ctx context.Context, s rig.Settings) {
	table := rig.Table{Columns: []rig.Column{
		rig.Col("peak while it fills", "%.0f", "filled.peak/1e6"), rig.Col("at rest", "%.0f", "still.rss/1e6"),
		rig.Col("peak of a client's first list", "%.0f", "listed.peak/1e6"), rig.Col("at rest after it", "%.0f", "after.rss/1e6"),
		rig.Col("live heap", "%.0f", "live.heap/1e6"), rig.Col("CPU s to fill, for the list", "%.1f, %.1f", "filled.cpu list.cpu"),
	}}
	table.Begin(fmt.Sprintf("RSS MB of a relay with %d pods", full.memory))
	upstream := rig.Start(ctx, "upstream", cluster.Size{Pods: full.memory, Nodes: 100, Fixed: true, TLS: true})
	defer upstream.Stop()
	rows := []memory{
		{name: "pods of 8 KB", how: relaying{Open: true}}, {name: "with a journal", how: relaying{Open: true}, journal: true},
		{name: "lists share no encodings", how: relaying{Open: true, Anew: true}},
	}
	if full.limit > 0 {
		rows = append(rows, memory{name: fmt.Sprintf("GOMEMLIMIT=%dMiB", full.limit), how: relaying{Open: true, Limit: int64(full.limit) << 20}})
	}
	rig.Rows(table, rows, rig.ByTurns(s.Repeat, rows, func(m memory) rig.Figures { return m.measure(ctx, upstream) }))
}

// measure has the memory of a relay in the course of time.
func (m memory) measure(ctx context.Context, upstream rig.Process) rig.Figures {
	if m.journal {
		m.how.Journals = rig.Must(os.MkdirTemp("", "relay-"))
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
	client := rig.Client(true)
	body := watch(ctx, client, r.relay.URL(), r.version(ctx), "", "agent") // waits for the copy
	defer body.Close()
	f := rig.Figures{}
	for _, step := range []struct {
		name, how string
		act       func()
	}{
		{"filled.", rig.AsItIs, func() {}},
		{"still.", rig.ResetPeak, func() { time.Sleep(rest) }},
		{"listed.", rig.AsItIs, func() { list(ctx, client, r.relay.URL(), "?resourceVersion=0") }},
		{"after.", rig.AsItIs, func() { time.Sleep(rest) }},
		{"live.", rig.Collected, func() {}},
	} {
		step.act()
		f = f.With(step.name, r.relay.Ask(ctx, step.how))
	}
	f["list.cpu"] = f["listed.cpu"] - f["still.cpu"]
	return f
}
