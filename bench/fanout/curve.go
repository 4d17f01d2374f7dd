package main

import (
	"context"
	"image/color"

	"github.com/tributary-go/tributary/bench/chart"
	"github.com/tributary-go/tributary/bench/harness"
)

// axes are the figures that are plotted over the number of watchers.
var axes = []struct{ label, figure string }{
	{"events/s", "events/wall"}, {"user CPU per event, us", "user*1e6/deliveries"}, {"p99, us", "p99"},
}

// colors are those of the libraries of a row by node.
var colors = []color.Color{chart.Vermilion, chart.Blue, chart.Green, chart.Grey, chart.LightGrey}

// measureCurve prints the rows by node with 8 writes in flight, and plots them over the number of
// watchers.
func measureCurve(ctx context.Context, s harness.Settings, pods int, path string) error {
	var grown [][]harness.Figures // per count, of the libraries
	table.Begin("")
	for _, watchers := range counts {
		medians, err := load{Watchers: watchers, InFlight: 8, Pods: pods, Events: *events}.measureAll(ctx, s)
		if err != nil {
			return err
		}
		grown = append(grown, medians)
	}
	var row []chart.Panel
	for _, a := range axes {
		p := chart.Panel{X: "watchers", Y: a.label, At: counts, Least: 0.1}
		for i, library := range (load{}).libraries() {
			line := chart.Line{Name: names[library], Color: colors[i]}
			for _, of := range grown {
				value, _ := of[i].Value(a.figure)
				line.Y = append(line.Y, value)
			}
			p.Lines = append(p.Lines, line)
		}
		row = append(row, p)
	}
	return chart.Write(path, [][]chart.Panel{row})
}
