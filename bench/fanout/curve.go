package main

import (
	"context"
	"image/color"

	"github.com/tributary-go/tributary/bench/chart"
)

// axes are the figures that are plotted over the number of watchers.
var axes = []struct {
	label string
	of    func(figures) float64
}{
	{"events/s", func(f figures) float64 { return f.EventsPerSecond }},
	{"user CPU per event, us", func(f figures) float64 { return f.CPU }},
	{"p99, us", func(f figures) float64 { return f.P99 }},
}

// colors are those of the libraries of a row by node.
var colors = []color.Color{chart.Vermilion, chart.Blue, chart.Green, chart.Grey, chart.LightGrey}

// measureCurve prints the rows by node with 8 writes in flight, and plots them over the number of
// watchers.
func measureCurve(ctx context.Context, counts []int, pods, events, repeat int, path string) error {
	grown := map[string][]figures{}
	printHead()
	for _, watchers := range counts {
		l := load{Watchers: watchers, InFlight: 8, Pods: pods, Events: events}
		medians, err := l.measureAll(ctx, repeat)
		if err != nil {
			return err
		}
		for library, f := range medians {
			grown[library] = append(grown[library], f)
		}
	}
	return plotCurve(path, counts, grown)
}

// plotCurve draws figures per library and count.
func plotCurve(path string, counts []int, grown map[string][]figures) error {
	var row []chart.Panel
	for _, a := range axes {
		p := chart.Panel{X: "watchers", Y: a.label, At: counts, Least: 0.1}
		for i, library := range (load{}).libraries() {
			line := chart.Line{Name: names[library], Color: colors[i]}
			for _, f := range grown[library] {
				line.Y = append(line.Y, a.of(f))
			}
			p.Lines = append(p.Lines, line)
		}
		row = append(row, p)
	}
	return chart.Write(path, [][]chart.Panel{row})
}
