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
func measureLatency(ctx context.Context, s harness.Settings) error {
	table := harness.Table{Lead: "| writes a second", Columns: []harness.Column{
		harness.Col("direct: p50, p99", "%.2f, %.2f", "p50 p99"), harness.Col("through the relay: p50, p99", "%.2f, %.2f", "relayed.p50 relayed.p99"),
		harness.Col("added: p50, p99", "%.2f, %.2f", "relayed.added50 relayed.added99"),
		harness.Col("CPU s of the upstream: direct, relay", "%.1f, %.1f", "cpu relayed.cpu"), harness.Col("of the relay", "%.1f", "relayed.relay.cpu"),
	}}
	table.Begin(fmt.Sprintf("ms from a write to its arrival at %d watchers", full.watchers))
	r, err := newRig(ctx, cluster.Size{Pods: 10 * full.watchers, Nodes: full.watchers}, relaying{})
	if err != nil {
		return err
	}
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
			medians, err := harness.ByTurns(s.Repeat, []server{r.upstream, r.relay}, func(of server) (harness.Figures, error) {
				return r.phase(ctx, of, rate, watched.selector)
			})
			if err != nil {
				return err
			}
			table.Row(medians[0].With("relayed.", medians[1]), watched.name, rate)
		}
	}
	return nil
}

// phase writes for some seconds. Beside the watchers of a server there is one direct watch of
// everything, which says what the relay has added.
func (r rig) phase(ctx context.Context, of server, rate int, selector func(int) string) (harness.Figures, error) {
	version, err := r.version(ctx)
	if err != nil {
		return nil, err
	}
	witness, err := watchAll(ctx, 1, r.upstream.URL(), version, true, ofAll)
	if err != nil {
		return nil, err
	}
	defer witness.close()
	watchers, err := watchAll(ctx, full.watchers, of.URL(), version, true, selector)
	if err != nil {
		return nil, err
	}
	defer watchers.close()
	// The connections and the heap are warm.
	if err := r.write(ctx, rate, rate); err != nil {
		return nil, err
	}
	time.Sleep(500 * time.Millisecond)
	began := time.Now().UnixNano()
	before, err := r.both(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.write(ctx, rate*full.seconds, rate); err != nil {
		return nil, err
	}
	time.Sleep(500 * time.Millisecond)
	after, err := r.both(ctx)
	if err != nil {
		return nil, err
	}
	watchers.close()
	witness.close()
	f := delays(watchers, witness, began)
	if f["events"] == 0 {
		return nil, fmt.Errorf("no event has come of %d writes", rate*full.seconds)
	}
	return after.Since(before).With("", f), nil
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
