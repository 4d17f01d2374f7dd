package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

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
	for _, row := range []struct {
		name, what, how string
		shuffled        bool
	}{
		{"first sync", "sync", "list", false}, {"first sync", "sync", "list", true},
		{"first sync", "sync", "watchlist", false}, {"watch", "watch", "watchlist", true},
	} {
		c := scenario{reading: s.reading(row.what, world.Protobuf), readers: []reader{{interned, row.how}, {clientGoReflector, row.how}}}
		order := "by key"
		if c.Shuffled = row.shuffled; c.Shuffled {
			order = "shuffled"
		}
		var alone harness.Figures
		for _, c.Cores = range []int{1, 2, 4} {
			if c.Cores > runtime.NumCPU() {
				break
			}
			medians := c.measure(ctx, s.Repeat)
			f := medians[0].With("theirs.", medians[1])
			if c.Cores == 1 {
				alone = f
			}
			table.Row(f.With("alone.", alone), row.name+", "+row.how, order, c.Cores)
		}
	}
}
