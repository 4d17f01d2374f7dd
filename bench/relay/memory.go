package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// memory is a row of a relay with many pods.
type memory struct {
	varied  bool
	journal bool
	anew    bool // lists share no encodings
	garbage int
	limit   int64
}

func (m memory) String() string {
	name := "pods of 8 KB"
	if m.varied {
		name = "pods that differ in more"
	}
	if m.journal {
		name += ", with a journal"
	}
	if m.anew {
		name += ", lists share no encodings"
	}
	if m.garbage > 0 {
		name += fmt.Sprintf(", GOGC=%d", m.garbage)
	}
	if m.limit > 0 {
		name += fmt.Sprintf(", GOMEMLIMIT=%dMiB", m.limit>>20)
	}
	return name
}

// held is the memory of a relay in the course of time, in bytes, and its CPU.
type held struct{ filling, rest, listing, after, live, cpu, listCPU float64 }

// measureMemory prints the memory of a relay that holds many pods.
func measureMemory(ctx context.Context, s settings) error {
	fmt.Printf("\n### RSS MB of a relay with %d pods (medians of %d)\n\n", s.memory, s.repeat)
	fmt.Println("| | peak while it fills | at rest | peak of a client's first list | at rest after it | live heap | CPU s to fill, for the list |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, varied := range []bool{false, true} {
		if name := (memory{varied: varied}).String(); !strings.HasPrefix(s.row, name) && s.row != "" {
			continue
		}
		upstream, err := startServer(ctx, "upstream", upstreamSettings{Pods: s.memory, Nodes: 100, Varied: varied, Fixed: true})
		if err != nil {
			return err
		}
		err = s.measureHeld(ctx, upstream, varied)
		if upstream.Stop(); err != nil {
			return err
		}
	}
	return nil
}

// measureHeld prints the rows of an upstream, which stay the same for all of them.
func (s settings) measureHeld(ctx context.Context, upstream server, varied bool) error {
	rows := []memory{{varied: varied}, {varied: varied, journal: true}, {varied: varied, anew: true}}
	for _, garbage := range s.garbage {
		rows = append(rows, memory{varied: varied, garbage: garbage}, memory{varied: varied, anew: true, garbage: garbage})
	}
	if s.limit > 0 {
		rows = append(rows, memory{varied: varied, limit: int64(s.limit) << 20})
	}
	rows = slices.DeleteFunc(rows, func(m memory) bool { return s.row != "" && s.row != m.String() })
	all := make([][]held, len(rows))
	for range s.repeat {
		for i, m := range rows { // by turns
			h, err := m.measure(ctx, s, upstream)
			if err != nil {
				return fmt.Errorf("%s: %w", m, err)
			}
			all[i] = append(all[i], h)
		}
	}
	for i, m := range rows {
		mb := func(figure func(held) float64) float64 { return of(all[i], figure) / 1e6 }
		fmt.Printf("| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f, %.1f |\n", m, mb(func(h held) float64 { return h.filling }),
			mb(func(h held) float64 { return h.rest }), mb(func(h held) float64 { return h.listing }), mb(func(h held) float64 { return h.after }),
			mb(func(h held) float64 { return h.live }), of(all[i], func(h held) float64 { return h.cpu }), of(all[i], func(h held) float64 { return h.listCPU }))
	}
	return nil
}

func (m memory) measure(ctx context.Context, s settings, upstream server) (h held, err error) {
	r := rig{upstream: upstream}
	how := relaySettings{Open: true, Anew: m.anew, Garbage: m.garbage, Limit: m.limit}
	if m.journal {
		if how.Journals, err = os.MkdirTemp("", "relay-"); err != nil {
			return h, err
		}
		defer os.RemoveAll(how.Journals)
	}
	if r.relay, err = r.startRelay(ctx, how); err != nil {
		return h, err
	}
	defer r.relay.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rest := 10 * time.Second // the runtime gives memory back
	if s.quick {
		rest = time.Second
	}
	version, err := r.version(ctx)
	if err != nil {
		return h, err
	}
	client := &http.Client{Transport: transport(true)}
	body, err := watch(ctx, client, r.relay.url, version, "", "agent") // waits for the copy
	if err != nil {
		return h, err
	}
	defer body.Close()
	filled, err := ask(ctx, r.relay.control, asItIs)
	if err != nil {
		return h, err
	}
	time.Sleep(rest)
	still, err := ask(ctx, r.relay.control, resetPeak)
	if err != nil {
		return h, err
	}
	if _, err := list(ctx, client, r.relay.url, "?resourceVersion=0"); err != nil {
		return h, err
	}
	listed, err := ask(ctx, r.relay.control, asItIs)
	if err != nil {
		return h, err
	}
	time.Sleep(rest)
	after, err := ask(ctx, r.relay.control, asItIs)
	if err != nil {
		return h, err
	}
	live, err := ask(ctx, r.relay.control, collected)
	if err == nil {
		err = profile(ctx, r.relay.control, s.profile)
	}
	return held{filled.Peak, still.RSS, listed.Peak, after.RSS, live.Heap, filled.CPU, listed.CPU - still.CPU}, err
}
