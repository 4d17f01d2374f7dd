package main

import (
	"context"
	"fmt"
	"maps"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

// ratios are the columns of the table of kinds. In most of them more is worse.
var ratios = []harness.Column{
	harness.Col("sync: wall", "%.2f", "sync.wall"), harness.Col("CPU", "%.2f", "sync.cpu"), harness.Col("peak", "%.2f", "sync.peak"),
	harness.Col("live", "%.2f", "sync.live"), harness.Col("plain: CPU", "%.2f", "sync.plain"), harness.Col("watch: events/s", "%.2f", lessIsWorse),
	harness.Col("CPU", "%.2f", "watch.cpu"), harness.Col("peak", "%.2f", "watch.peak"), harness.Col("live", "%.2f", "watch.live"),
	harness.Col("plain: CPU", "%.2f", "watch.plain"), harness.Col("shared", "%.0f %%", "shared*100"),
}

const lessIsWorse = "watch.rate"

// measureKinds prints one row of ratios for each kind: ours, in its default form, to client-go's.
// The last row has the worst of each column.
func measureKinds(ctx context.Context, s settings) {
	s.Pods = max(100, s.Pods/5)
	table := harness.Table{Lead: "kind | B/object", Columns: ratios}
	table.Begin("kinds", fmt.Sprintf("Ours to client-go's reflector, both with a watch list; *plain* is ours without sharing. %d objects, of which each "+
		"changes twice; of the large kinds a hundredth, and 30 changes of each. %s.", s.Pods, s.repetitions()))
	var worst harness.Figures
	for _, kind := range append([]world.Kind{{Name: "Pod"}, {Name: world.WidgetKind}}, world.Kinds...) {
		if s.Kind != "" && s.Kind != kind.Name {
			continue
		}
		var size int
		var f harness.Figures
		harness.Within(kind.Name, func() { size, f = s.measureKind(ctx, kind) })
		table.Row(f, kind.Name, size)
		delete(f, "shared")
		if worst == nil {
			worst = maps.Clone(f)
		}
		for name, value := range f {
			if (name == lessIsWorse) == (value < worst[name]) {
				worst[name] = value
			}
		}
	}
	table.Row(worst, "**worst**", "")
}

// measureKind returns the size of an object on the wire, and its ratios.
func (s settings) measureKind(ctx context.Context, kind world.Kind) (size int, ratios harness.Figures) {
	c := scenario{readers: []reader{{interned, "watchlist"}, {plain, "watchlist"}, {clientGoReflector, "watchlist"}}}
	c.reading = reading{Form: world.Protobuf, Kind: kind.Name, PerSet: s.PerSet, Objects: s.Pods, Events: 2 * s.Pods}
	if kind.Large {
		c.Objects /= 100
		c.Events = 30 * c.Objects
	}
	if kind.Name == world.WidgetKind {
		c.Form = world.Tree
	}
	ratios = harness.Figures{}
	for _, c.What = range []string{"sync", "watch"} {
		what, medians := c.What, c.measure(ctx, s.Repeat)
		ours, plain, theirs := medians[0], medians[1], medians[2]
		for _, name := range []string{"wall", "cpu", "peak", "live"} {
			ratios[what+"."+name] = ours[name] / theirs[name]
		}
		ratios[what+".plain"] = plain["cpu"] / theirs["cpu"]
		ratios["shared"] = ours["shared"]
	}
	ratios[lessIsWorse] = 1 / ratios["watch.wall"]
	return len(world.CodecOf(c.Kind, c.PerSet, c.Form).Object(0, 0, 0)), ratios
}
