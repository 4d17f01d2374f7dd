package main

import (
	"context"

	"github.com/tributary-go/tributary/bench/chart"
	"github.com/tributary-go/tributary/bench/harness"
)

// measureCurve prints the rows by node with 8 writes in flight, and plots them over the number of
// watchers.
func measureCurve(ctx context.Context, s harness.Settings, pods int, path string) {
	grown := make([][]harness.Figures, len(libraries)) // per library, per count
	table.Begin("")
	for _, watchers := range counts {
		for i, f := range (load{Watchers: watchers, InFlight: 8, Pods: pods, Events: *events}).measureAll(ctx, s)[:len(libraries)] {
			grown[i] = append(grown[i], f)
		}
	}
	var row []chart.Panel
	for _, axis := range []struct{ label, figure string }{
		{"events/s", "events/wall"}, {"user CPU per event, us", "user*1e6/deliveries"}, {"p99, us", "p99"},
	} {
		p := chart.Panel{X: "watchers", Y: axis.label, At: counts, Least: 0.1}
		for i, color := range []chart.Color{chart.Vermilion, chart.Blue} {
			p.Lines = append(p.Lines, chart.LineOf(names[libraries[i]], color, grown[i], axis.figure))
		}
		row = append(row, p)
	}
	chart.Write(path, [][]chart.Panel{row})
}
