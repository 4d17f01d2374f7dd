package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
)

// agent is the task of a process of agents.
type agent struct {
	Library, URL string
	Nodes        int // whose agents it is, if it is not one agent of the first node
	Rounds       int // of polls
}

// sizes say how much is measured.
type sizes struct {
	nodes, perNode int
	minutes        int // of churn, which stand for an hour: less for CI
	rate           int // pods replaced a second
	rounds         int // of polls
	share          []int
}

var full = sizes{minutes: 60, rounds: 10, share: []int{1, 5, 20}}

func main() {
	flag.IntVar(&full.nodes, "agents", 1000, "agents, one for each node")
	flag.IntVar(&full.perNode, "pods", 30, "pods of each node")
	flag.IntVar(&full.rate, "rate", 200, "pods that are replaced a second, until the churn of an hour is written")
	harness.Main(5, harness.Roles{"serve": harness.Acts(cluster.Serve), "agents": harness.Acts(beAgents), "agent": harness.Acts(beOne)}, measure)
}

func measure(ctx context.Context, s harness.Settings) error {
	if s.Quick {
		full = sizes{nodes: 20, perNode: 5, minutes: 5, rate: 20, rounds: 2, share: []int{2}}
	}
	return s.Each(ctx, harness.Part{Name: "memory", Measure: measureMemory}, harness.Part{Name: "bill", Measure: measureBill},
		harness.Part{Name: "load", Measure: measureLoad}, harness.Part{Name: "freshness", Measure: measureFreshness})
}

// oneNode has the pods of a node.
var oneNode = cluster.Size{Pods: 110, Nodes: 1, PodsOnly: true}

// upstream is the process of a cluster.
type upstream struct{ harness.Process }

func serve(ctx context.Context, size cluster.Size) (upstream, error) {
	p, err := harness.Start(ctx, "serve", size)
	return upstream{p}, err
}

// ask asks the control of the cluster.
func (u upstream) ask(ctx context.Context) (harness.Figures, error) {
	return harness.Call[harness.Figures](ctx, u.Words[1]+harness.AsItIs)
}

func (u upstream) churn(ctx context.Context) error {
	return harness.Do(ctx, fmt.Sprintf("%s/churn?minutes=%d&rate=%d", u.Words[1], full.minutes, full.rate))
}

// measureMemory measures the memory of an agent of one node, over a program with the same imports
// that does nothing.
func measureMemory(ctx context.Context, s harness.Settings) error {
	server, err := serve(ctx, oneNode)
	if err != nil {
		return err
	}
	defer server.Stop()
	libraries := []string{empty, manifested, clientGo}
	medians, err := harness.ByTurns(s.Repeat, libraries, func(library string) (harness.Figures, error) {
		p, err := startAgent(ctx, library, server)
		if err != nil {
			return nil, err
		}
		p.Stop()
		return memoryOf(p)
	})
	if err != nil {
		return err
	}
	table := harness.Table{Columns: []harness.Column{
		harness.Col("RSS MiB", "%.1f", "rss/1048576"), harness.Col("over the empty program", "%.1f", "more.rss/1048576"),
	}}
	table.Begin("memory of an agent, 110 pods")
	for i, f := range medians {
		table.Row(f.With("more.", f.Since(medians[0])), libraries[i])
	}
	return nil
}

func startAgent(ctx context.Context, library string, server upstream) (harness.Process, error) {
	return harness.Start(ctx, "agent", agent{Library: library, URL: server.URL()})
}

// memoryOf has the memory that an agent says.
func memoryOf(p harness.Process) (harness.Figures, error) {
	var rss, anonymous float64
	if _, err := fmt.Sscan(p.Words[0]+" "+p.Words[1], &rss, &anonymous); err != nil {
		return nil, err
	}
	return harness.Figures{"rss": rss, "anonymous": anonymous}, nil
}

// measureBill measures agents that share a node: the cost of their servers, and their memory.
// Each is a process of its own, as agents of different vendors are.
func measureBill(ctx context.Context, _ harness.Settings) error {
	table := harness.Table{Lead: "| agents", Columns: []harness.Column{
		harness.Col("watches", "%.0f", "open"), harness.Col("first state: requests, KB", "%.0f, %.0f", "requests sent/1e3"),
		harness.Col("an hour of churn: KB, CPU s of the server", "%.0f, %.2f", "hour.sent/1e3 hour.cpu"),
		harness.Col("RSS MiB of one, of all", "%.1f, %.0f", "one.rss/1048576 all.rss/1048576"),
		harness.Col("of it anonymous", "%.1f, %.0f", "one.anonymous/1048576 all.anonymous/1048576"),
	}}
	table.Begin("agents that share a node of 110 pods")
	for _, library := range []string{empty, tributary, kubelet, clientGo} {
		for _, n := range full.share {
			f, err := bill(ctx, library, n)
			if err != nil {
				return fmt.Errorf("%d of %s: %w", n, library, err)
			}
			table.Row(f, library, n)
		}
	}
	return nil
}

// bill is the cost of some agents of one node.
func bill(ctx context.Context, library string, n int) (harness.Figures, error) {
	server, err := serve(ctx, oneNode)
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	before, err := server.ask(ctx)
	if err != nil {
		return nil, err
	}
	agents := make([]harness.Process, n)
	var starts errgroup.Group
	for i := range agents { // all at once
		starts.Go(func() (err error) {
			agents[i], err = startAgent(ctx, library, server)
			return err
		})
	}
	if err := starts.Wait(); err != nil {
		return nil, err
	}
	var each []harness.Figures
	all := harness.Figures{}
	for _, p := range agents {
		defer p.Stop()
		f, err := memoryOf(p)
		if err != nil {
			return nil, err
		}
		each = append(each, f)
		all["rss"], all["anonymous"] = all["rss"]+f["rss"], all["anonymous"]+f["anonymous"]
	}
	synced, err := server.ask(ctx)
	if err != nil {
		return nil, err
	}
	first := cluster.Since(synced, before).With("one.", harness.Medians(each)).With("all.", all)
	// Each poll costs the same, and the first of each agent is its first state.
	if polls := first["kubelet"]; polls > 0 {
		first["requests"], first["sent"] = float64(n), first["sent"]/polls*float64(n)
		return first, nil
	}
	if err := server.churn(ctx); err != nil {
		return nil, err
	}
	after, err := server.ask(ctx)
	return first.With("hour.", cluster.Since(after, synced)), err
}

// measureLoad measures the cost of agents for their server.
func measureLoad(ctx context.Context, _ harness.Settings) error {
	table := harness.Table{Columns: []harness.Column{
		harness.Col("first state: requests, KB an agent", "%.1f, %.0f", "first.requests/agents first.sent/1e3/agents"),
		harness.Col("an hour: requests an agent", "%.1f", "hours*hour.requests/agents"), harness.Col("KB an agent", "%.0f", "hours*hour.sent/1e3/agents"),
		harness.Col("CPU s of the server", "%.1f", "cpu"),
	}}
	table.Begin(fmt.Sprintf("%d agents, %d pods each, 1 %% of the pods replaced a minute", full.nodes, full.perNode))
	var writes float64 // CPU of the writer alone
	for _, library := range []string{nobody, tributary, clientGo, polling} {
		first, hour, err := load(ctx, library)
		if err != nil {
			return fmt.Errorf("%s: %w", library, err)
		}
		f := harness.Figures{"hours": 60 / float64(full.minutes)}
		switch library {
		case nobody:
			writes = hour["cpu"] * f["hours"]
			f["cpu"] = writes
		case polling: // nothing was written meanwhile
			f["hours"] = 720 / float64(full.rounds)
			f["cpu"], f["agents"] = hour["cpu"]*f["hours"]+writes, float64(full.nodes)
			f = f.With("hour.", hour)
		default:
			f["cpu"], f["agents"] = hour["cpu"]*f["hours"], float64(full.nodes)
			f = f.With("first.", first).With("hour.", hour)
		}
		table.Row(f, library)
	}
	return nil
}

// load measures one row: the first state, and the churn of an hour or the rounds of a poll.
func load(ctx context.Context, library string) (first, hour harness.Figures, err error) {
	server, err := serve(ctx, cluster.Size{Pods: full.nodes * full.perNode, Nodes: full.nodes, PodsOnly: true})
	if err != nil {
		return nil, nil, err
	}
	defer server.Stop()
	before, err := server.ask(ctx)
	if err != nil {
		return nil, nil, err
	}
	if library != nobody {
		agents, err := harness.Start(ctx, "agents", agent{Library: library, URL: server.URL(), Nodes: full.nodes, Rounds: full.rounds})
		if err != nil {
			return nil, nil, err
		}
		defer agents.Stop()
	}
	synced, err := server.ask(ctx)
	if err != nil {
		return nil, nil, err
	}
	first = cluster.Since(synced, before)
	if library == polling {
		return nil, first, nil
	}
	if library != nobody && first["sent"] == 0 {
		return nil, nil, errors.New("the agents have read nothing")
	}
	if err := server.churn(ctx); err != nil {
		return nil, nil, err
	}
	after, err := server.ask(ctx)
	return first, cluster.Since(after, synced), err
}
