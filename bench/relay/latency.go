package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
)

// measureLatency prints the time from a write to its arrival, of direct watches and of watches
// through a relay.
func measureLatency(ctx context.Context, s harness.Settings) {
	table := harness.Table{Lead: "| writes a second", Columns: []harness.Column{
		harness.Col("direct: p50, p99", "%.2f, %.2f", "p50 p99"), harness.Col("through the relay: p50, p99", "%.2f, %.2f", "relayed.p50 relayed.p99"),
		harness.Col("added: p50, p99", "%.2f, %.2f", "relayed.added50 relayed.added99"),
		harness.Col("CPU s of the upstream: direct, relay", "%.1f, %.1f", "cpu relayed.cpu"), harness.Col("of the relay", "%.1f", "relayed.relay.cpu"),
	}}
	table.Begin(fmt.Sprintf("ms from a write to its arrival at %d watchers", full.watchers))
	r := newRoute(ctx, cluster.Size{Pods: 10 * full.watchers, Nodes: full.watchers}, relaying{})
	defer r.stop()
	for _, watched := range []struct {
		name     string
		selector func(i int) string
		most     int // deliveries a second: two processors make no more, with or without a relay
	}{{"each the pods of its node", ofNode, 1 << 30}, {"each everything", ofAll, 20_000}} {
		for _, rate := range full.rates {
			if rate*full.watchers > watched.most {
				continue
			}
			medians := harness.ByTurns(s.Repeat, []harness.Process{r.upstream, r.relay}, func(of harness.Process) harness.Figures {
				return r.phase(ctx, of, rate, watched.selector)
			})
			table.Row(medians[0].With("relayed.", medians[1]), watched.name, rate)
		}
	}
}

// phase writes for some seconds. Beside the watchers of a server there is one direct watch of
// everything, which says what the relay has added.
func (r route) phase(ctx context.Context, of harness.Process, rate int, selector func(int) string) harness.Figures {
	version := r.version(ctx)
	witness := watchAll(ctx, 1, r.upstream.URL(), version, true, ofAll)
	defer witness.close()
	watchers := watchAll(ctx, full.watchers, of.URL(), version, true, selector)
	defer watchers.close()
	// The connections and the heap are warm.
	r.write(ctx, rate, rate)
	began, before := time.Now().UnixNano(), r.both(ctx)
	r.write(ctx, rate*full.seconds, rate)
	after := r.both(ctx)
	watchers.close()
	witness.close()
	f := delays(watchers, witness, began)
	if f["events"] == 0 {
		harness.Fail("no event has come of %d writes", rate*full.seconds)
	}
	return after.Since(before).With("", f)
}

// delays are those of events that were written since then, in milliseconds: to the watchers, and
// beyond the time to the witness, which may be nil.
func delays(watchers, witness *group, since int64) harness.Figures {
	direct := map[int64]int64{}
	if witness != nil {
		for _, a := range witness.arrivals[0] {
			direct[a.written] = a.came
		}
	}
	var all, added []float64
	for _, arrivals := range watchers.arrivals {
		for _, a := range arrivals {
			if a.written < since {
				continue
			}
			all = append(all, float64(a.came-a.written)/1e6)
			if came, ok := direct[a.written]; ok {
				added = append(added, float64(a.came-came)/1e6)
			}
		}
	}
	return harness.Figures{
		"events": float64(len(all)), "p50": harness.Median(all), "p99": harness.Quantile(all, 0.99),
		"added50": harness.Median(added), "added99": harness.Quantile(added, 0.99),
	}
}
