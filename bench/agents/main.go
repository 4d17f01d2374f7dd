package main

import (
	"context"
	"flag"
	"fmt"

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

var full = sizes{nodes: 1000, perNode: 30, minutes: 60, rounds: 10, share: []int{1, 5, 20}}

func main() {
	flag.IntVar(&full.rate, "rate", 200, "pods that are replaced a second, until the churn of an hour is written")
	harness.Main(5, harness.Roles{"serve": harness.Acts(cluster.Serve), "agents": harness.Acts(beAgents), "agent": harness.Acts(beOne)}, measure)
}

func measure(ctx context.Context, s harness.Settings) {
	if s.Quick {
		full = sizes{nodes: 20, perNode: 5, minutes: 5, rate: 20, rounds: 2, share: []int{2}}
	}
	s.Each(ctx, harness.Part{Name: "memory", Measure: measureMemory}, harness.Part{Name: "bill", Measure: measureBill},
		harness.Part{Name: "load", Measure: measureLoad}, harness.Part{Name: "freshness", Measure: measureFreshness})
}

// oneNode has the pods of a node.
var oneNode = cluster.Size{Pods: 110, Nodes: 1, PodsOnly: true}

func churn(ctx context.Context, server harness.Process) {
	server.Do(ctx, "/churn?minutes=%d&rate=%d", full.minutes, full.rate)
}

// measureMemory measures the memory of an agent of one node, over a program with the same imports
// that does nothing.
func measureMemory(ctx context.Context, s harness.Settings) {
	server := harness.Start(ctx, "serve", oneNode)
	defer server.Stop()
	libraries := []string{empty, manifested, clientGo}
	medians := harness.ByTurns(s.Repeat, libraries, func(library string) harness.Figures {
		p := harness.Start(ctx, "agent", agent{Library: library, URL: server.URL()})
		defer p.Stop()
		return memoryOf(p)
	})
	table := harness.Table{Columns: []harness.Column{
		harness.Col("RSS MiB", "%.1f", "rss/1048576"), harness.Col("over the empty program", "%.1f", "more.rss/1048576"),
	}}
	table.Begin("memory of an agent, 110 pods")
	for i, f := range medians {
		table.Row(f.With("more.", f.Since(medians[0])), libraries[i])
	}
}

// memoryOf has the memory that an agent says.
func memoryOf(p harness.Process) harness.Figures {
	var rss, anonymous float64
	harness.Must(fmt.Sscan(p.String(), &rss, &anonymous))
	return harness.Figures{"rss": rss, "anonymous": anonymous}
}

// measureBill measures agents that share a node: the cost of their servers, and their memory.
// Each is a process of its own, as agents of different vendors are.
func measureBill(ctx context.Context, _ harness.Settings) {
	table := harness.Table{Lead: "| agents", Columns: []harness.Column{
		harness.Col("watches", "%.0f", "open"), harness.Col("first state: requests, KB", "%.0f, %.0f", "requests sent/1e3"),
		harness.Col("an hour of churn: KB, CPU s of the server", "%.0f, %.2f", "hour.sent/1e3 hour.cpu"),
		harness.Col("RSS MiB of one, of all", "%.1f, %.0f", "one.rss/1048576 all.rss/1048576"),
		harness.Col("of it anonymous", "%.1f, %.0f", "one.anonymous/1048576 all.anonymous/1048576"),
	}}
	table.Begin("agents that share a node of 110 pods")
	for _, library := range []string{empty, tributary, kubelet, clientGo} {
		for _, n := range full.share {
			harness.Within(library, func() { table.Row(bill(ctx, library, n), library, n) })
		}
	}
}

// bill is the cost of some agents of one node.
func bill(ctx context.Context, library string, n int) harness.Figures {
	server := harness.Start(ctx, "serve", oneNode)
	defer server.Stop()
	before := server.Ask(ctx, harness.AsItIs)
	agents := make([]harness.Process, n)
	defer func() {
		for _, p := range agents {
			if p.Process != nil { // else it has failed to start
				p.Stop()
			}
		}
	}()
	harness.AtOnce(n, n, func(i int) { agents[i] = harness.Start(ctx, "agent", agent{Library: library, URL: server.URL()}) })
	var each []harness.Figures
	all := harness.Figures{}
	for _, p := range agents {
		f := memoryOf(p)
		each = append(each, f)
		all["rss"], all["anonymous"] = all["rss"]+f["rss"], all["anonymous"]+f["anonymous"]
	}
	synced := server.Ask(ctx, harness.AsItIs)
	first := cluster.Since(synced, before).With("one.", harness.Medians(each)).With("all.", all)
	// Each poll costs the same, and the first of each agent is its first state.
	if polls := first["kubelet"]; polls > 0 {
		first["requests"], first["sent"] = float64(n), first["sent"]/polls*float64(n)
		return first
	}
	churn(ctx, server)
	return first.With("hour.", cluster.Since(server.Ask(ctx, harness.AsItIs), synced))
}

// measureLoad measures the cost of agents for their server.
func measureLoad(ctx context.Context, _ harness.Settings) {
	table := harness.Table{Columns: []harness.Column{
		harness.Col("first state: requests, KB an agent", "%.1f, %.0f", "first.requests/agents first.sent/1e3/agents"),
		harness.Col("an hour: requests an agent", "%.1f", "hours*hour.requests/agents"), harness.Col("KB an agent", "%.0f", "hours*hour.sent/1e3/agents"),
		harness.Col("CPU s of the server", "%.1f", "cpu"),
	}}
	table.Begin(fmt.Sprintf("%d agents, %d pods each, 1 %% of the pods replaced a minute", full.nodes, full.perNode))
	var writes float64 // CPU of the writer alone
	for _, library := range []string{nobody, tributary, clientGo, polling} {
		harness.Within(library, func() {
			f := load(ctx, library)
			switch library {
			case nobody:
				writes = f["cpu"]
			case polling: // nothing was written meanwhile
				f["cpu"] += writes
			}
			table.Row(f, library)
		})
	}
}

// load measures one row: the first state, and the churn of an hour or the rounds of a poll.
func load(ctx context.Context, library string) harness.Figures {
	server := harness.Start(ctx, "serve", cluster.Size{Pods: full.nodes * full.perNode, Nodes: full.nodes, PodsOnly: true})
	defer server.Stop()
	before := server.Ask(ctx, harness.AsItIs)
	f := harness.Figures{"hours": 60 / float64(full.minutes)}
	if library != nobody {
		f["agents"] = float64(full.nodes)
		agents := harness.Start(ctx, "agents", agent{Library: library, URL: server.URL(), Nodes: full.nodes, Rounds: full.rounds})
		defer agents.Stop()
	}
	synced := server.Ask(ctx, harness.AsItIs)
	first := cluster.Since(synced, before)
	if library == polling {
		f["hours"] = 720 / float64(full.rounds)
		f["cpu"] = first["cpu"] * f["hours"]
		return f.With("hour.", first)
	}
	churn(ctx, server)
	hour := cluster.Since(server.Ask(ctx, harness.AsItIs), synced)
	f["cpu"] = hour["cpu"] * f["hours"]
	if library == nobody {
		return f
	}
	if first["sent"] == 0 {
		harness.Fail("the agents have read nothing")
	}
	return f.With("first.", first).With("hour.", hour)
}
