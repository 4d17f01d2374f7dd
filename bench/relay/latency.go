package main

import (
	"context"
	"fmt"
	"time"
)

// delays are those of a phase, in milliseconds.
type delays struct {
	events     int // that all watchers were told
	p50, p99   float64
	added      []float64 // p50 and p99 beyond a direct watch; nil: there was none
	serverCPU  float64   // seconds
	relaysCPU  float64
	relaysPeak float64
}

// measureLatency prints the time from a write to its arrival, of direct watches and of watches
// through a relay.
func measureLatency(ctx context.Context, s settings) error {
	fmt.Printf("\n### ms from a write to its arrival at %d watchers (medians of %d phases of each, by turns)\n\n", s.watchers, s.repeat)
	fmt.Println("| | writes a second | direct: p50, p99 | through the relay: p50, p99 | added: p50, p99 | CPU s of the upstream: direct, relay | of the relay |")
	fmt.Println("|---|---|---|---|---|---|---|")
	r, err := newRig(ctx, upstreamSettings{Pods: 10 * s.watchers, Nodes: s.watchers}, relaySettings{})
	if err != nil {
		return err
	}
	defer r.stop()
	for _, everything := range []bool{false, true} {
		for _, rate := range s.rates {
			if everything && rate*s.watchers > 20_000 {
				continue // two processors deliver no more, with or without a relay
			}
			name, selector := "each the pods of its node", ofNode
			if everything {
				name, selector = "each everything", func(int) string { return "" }
			}
			var direct, relayed []delays
			for range s.repeat {
				for _, side := range []*[]delays{&direct, &relayed} {
					d, err := r.phase(ctx, s, rate, side == &relayed, selector)
					if err != nil {
						return err
					}
					*side = append(*side, d)
				}
			}
			p := func(all []delays, figure func(delays) float64) float64 { return of(all, figure) }
			p50, p99 := func(d delays) float64 { return d.p50 }, func(d delays) float64 { return d.p99 }
			cpu := func(d delays) float64 { return d.serverCPU }
			fmt.Printf("| %s | %d | %.2f, %.2f | %.2f, %.2f | %.2f, %.2f | %.1f, %.1f | %.1f |\n", name, rate, p(direct, p50), p(direct, p99),
				p(relayed, p50), p(relayed, p99), p(relayed, func(d delays) float64 { return d.added[0] }), p(relayed, func(d delays) float64 { return d.added[1] }),
				p(direct, cpu), p(relayed, cpu), p(relayed, func(d delays) float64 { return d.relaysCPU }))
		}
	}
	return nil
}

// phase writes for some seconds. Beside watchers of the relay there is one direct watch of
// everything, which says what the relay has added.
func (r rig) phase(ctx context.Context, s settings, rate int, relayed bool, selector func(int) string) (d delays, err error) {
	version, err := r.version(ctx)
	if err != nil {
		return d, err
	}
	url := r.upstream.url
	witness, err := watchAll(ctx, 1, r.upstream.url, version, true, func(int) string { return "" })
	if err != nil {
		return d, err
	}
	defer witness.close()
	if relayed {
		url = r.relay.url
	}
	watchers, err := watchAll(ctx, s.watchers, url, version, true, selector)
	if err != nil {
		return d, err
	}
	defer watchers.close()
	// The connections and the heap are warm.
	if err := r.write(ctx, rate, rate); err != nil {
		return d, err
	}
	time.Sleep(500 * time.Millisecond)
	began := time.Now().UnixNano()
	before, relayBefore, err := r.both(ctx)
	if err != nil {
		return d, err
	}
	if err := r.write(ctx, rate*s.seconds, rate); err != nil {
		return d, err
	}
	time.Sleep(500 * time.Millisecond)
	after, relayAfter, err := r.both(ctx)
	if err != nil {
		return d, err
	}
	watchers.close()
	witness.close()
	d = delaysOf(watchers, witness, began)
	d.serverCPU, d.relaysCPU, d.relaysPeak = after.CPU-before.CPU, relayAfter.CPU-relayBefore.CPU, relayAfter.Peak
	if d.events == 0 {
		err = fmt.Errorf("no event has come of %d writes", rate*s.seconds)
	}
	return d, err
}

func (r rig) both(ctx context.Context) (upstream, relay used, err error) {
	if upstream, err = ask(ctx, r.upstream.control, asItIs); err != nil {
		return upstream, relay, err
	}
	relay, err = ask(ctx, r.relay.control, asItIs)
	return upstream, relay, err
}

// delaysOf are the delays of events that were written since then.
func delaysOf(watchers, witness *group, since int64) (d delays) {
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
	d.events, d.p50, d.p99 = len(all), quantile(all, 0.5), quantile(all, 0.99)
	d.added = []float64{quantile(added, 0.5), quantile(added, 0.99)}
	return d
}
