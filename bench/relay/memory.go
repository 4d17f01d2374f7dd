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
func measureMemory(ctx context.Context, s harness.Settings) error {
	table := harness.Table{Columns: []harness.Column{
		harness.Col("peak while it fills", "%.0f", "filled.peak/1e6"), harness.Col("at rest", "%.0f", "still.rss/1e6"),
		harness.Col("peak of a client's first list", "%.0f", "listed.peak/1e6"), harness.Col("at rest after it", "%.0f", "after.rss/1e6"),
		harness.Col("live heap", "%.0f", "live.heap/1e6"), harness.Col("CPU s to fill, for the list", "%.1f, %.1f", "filled.cpu list.cpu"),
	}}
	table.Begin(fmt.Sprintf("RSS MB of a relay with %d pods", full.memory))
	upstream, err := start(ctx, "upstream", cluster.Size{Pods: full.memory, Nodes: 100, Fixed: true, TLS: true})
	if err != nil {
		return err
	}
	defer upstream.Stop()
	rows := []memory{
		{name: "pods of 8 KB", how: relaying{Open: true}}, {name: "with a journal", how: relaying{Open: true}, journal: true},
		{name: "lists share no encodings", how: relaying{Open: true, Anew: true}},
	}
	if full.limit > 0 {
		rows = append(rows, memory{name: fmt.Sprintf("GOMEMLIMIT=%dMiB", full.limit), how: relaying{Open: true, Limit: int64(full.limit) << 20}})
	}
	medians, err := harness.ByTurns(s.Repeat, rows, func(m memory) (harness.Figures, error) { return m.measure(ctx, upstream) })
	if err != nil {
		return err
	}
	for i, m := range rows {
		table.Row(medians[i], m)
	}
	return nil
}

// measure has the memory of a relay in the course of time.
func (m memory) measure(ctx context.Context, upstream server) (f harness.Figures, err error) {
	if m.journal {
		if m.how.Journals, err = os.MkdirTemp("", "relay-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(m.how.Journals)
	}
	r := rig{upstream: upstream}
	if r.relay, err = r.startRelay(ctx, m.how); err != nil {
		return nil, err
	}
	defer r.relay.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rest := 10 * time.Second // the runtime gives memory back
	if full.quick {
		rest = time.Second
	}
	version, err := r.version(ctx)
	if err != nil {
		return nil, err
	}
	client := harness.Client(true)
	body, err := watch(ctx, client, r.relay.URL(), version, "", "agent") // waits for the copy
	if err != nil {
		return nil, err
	}
	defer body.Close()
	f = harness.Figures{}
	for _, step := range []struct {
		name, how string
		act       func() error
	}{
		{"filled.", harness.AsItIs, nil},
		{"still.", harness.ResetPeak, func() error { time.Sleep(rest); return nil }},
		{"listed.", harness.AsItIs, func() error { return list(ctx, client, r.relay.URL(), "?resourceVersion=0") }},
		{"after.", harness.AsItIs, func() error { time.Sleep(rest); return nil }},
		{"live.", harness.Collected, nil},
	} {
		if step.act != nil {
			if err := step.act(); err != nil {
				return nil, err
			}
		}
		now, err := r.relay.ask(ctx, step.how)
		if err != nil {
			return nil, err
		}
		f = f.With(step.name, now)
	}
	f["list.cpu"] = f["listed.cpu"] - f["still.cpu"]
	return f, nil
}
