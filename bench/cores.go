package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

// work is a row of the table of cores, on each number of cores.
type work struct {
	name, what, how string
	objects         int
	shuffled        bool
}

// measureCores prints ours beside client-go's reflector, asked in the same way, where both have 1,
// 2 and 4 cores. The sending server has all cores. Lists come by key, as from an API server, and
// shuffled.
func measureCores(ctx context.Context, s settings) {
	s.Events /= 4
	table := harness.Table{Lead: "work | order | cores", Columns: []harness.Column{
		harness.Col("ours: wall s", "%.2f", "wall"), harness.Col("CPU s", "%.2f", "cpu"),
		harness.Col("client-go: wall s", "%.2f", "theirs.wall"), harness.Col("CPU s", "%.2f", "theirs.cpu"),
		harness.Col("ours / client-go: wall", "%.2f", "wall/theirs.wall"), harness.Col("CPU", "%.2f", "cpu/theirs.cpu"),
		harness.Col("1 core / this, ours", "%.2f", "alone.wall/wall"), harness.Col("client-go", "%.2f", "alone.theirs.wall/theirs.wall"),
	}}
	table.Begin("cores", fmt.Sprintf("The reader has so many cores (`GOMAXPROCS`); %d objects, of a watch %d events over %d. %s.",
		s.Pods, s.Events, s.EventPods, s.repetitions()))
	for _, w := range []work{
		{"first sync", "sync", "list", s.Pods, false},
		{"first sync", "sync", "list", s.Pods, true},
		{"first sync", "sync", "watchlist", s.Pods, false},
		{"watch", "watch", "watchlist", s.EventPods, true},
	} {
		order := "by key"
		if s.Shuffled = w.shuffled; w.shuffled {
			order = "shuffled"
		}
		var alone harness.Figures
		for _, s.Cores = range []int{1, 2, 4} {
			if s.Cores > runtime.NumCPU() {
				break
			}
			c := scenario{what: w.what, form: world.Protobuf, objects: w.objects, perSet: s.PerSet, readers: []reader{{interned, w.how}, {clientGoReflector, w.how}}}
			medians := c.measure(ctx, s)
			f := medians[0].With("theirs.", medians[1])
			if s.Cores == 1 {
				alone = f
			}
			table.Row(f.With("alone.", alone), w.name+", "+w.how, order, s.Cores)
		}
	}
}
