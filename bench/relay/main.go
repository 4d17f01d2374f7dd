package main

import (
	"context"
	"flag"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
)

// sizes say how much is measured.
type sizes struct {
	quick    bool
	agents   []int
	idle     []int
	rates    []int
	memory   int // pods
	limit    int // a row of memory by GOMEMLIMIT, in MiB; 0: none
	seconds  int // of a phase with writes
	watchers int
	slowRate int
}

var full = sizes{agents: []int{1, 10, 100}, idle: []int{1_000, 10_000}, rates: []int{10, 100, 1_000}, seconds: 10, watchers: 100, slowRate: 500}

func main() {
	flag.IntVar(&full.memory, "pods", 50_000, "pods of the table of memory")
	flag.IntVar(&full.limit, "limit", 0, "measure memory also with this GOMEMLIMIT, in `MiB`")
	harness.Main(3, harness.Roles{
		"upstream": harness.Acts(cluster.Serve), "relay": harness.Acts(serveRelay), "agents": harness.Acts(beAgents),
	}, measure)
}

func measure(ctx context.Context, s harness.Settings) {
	if s.Quick {
		full = sizes{quick: true, agents: []int{2}, idle: []int{50}, rates: []int{20}, memory: 300, seconds: 1, watchers: 5, slowRate: 50}
	}
	s.Each(ctx, harness.Part{Name: "bill", Measure: measureBill}, harness.Part{Name: "idle", Measure: measureIdle},
		harness.Part{Name: "memory", Measure: measureMemory}, harness.Part{Name: "latency", Measure: measureLatency},
		harness.Part{Name: "slow", Measure: measureSlow})
}
