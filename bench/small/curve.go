package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/tributary-go/tributary/bench/chart"
	"github.com/tributary-go/tributary/bench/harness"
)

// grow measures the heap of an informer of pods over their number, and plots it: of an informer
// alone, of many that share their kind, and ours as a part of client-go's.
func (s sizes) grow(ctx context.Context, settings harness.Settings, url, path string) {
	counts := s.counts
	switch {
	case counts != nil:
	case s.quick:
		counts = []int{1, 3, 20}
	default:
		counts = []int{1, 3, 6, 10, 20, 50, 110, 300, 1000, 5000, 50_000}
	}
	if slices.Contains(counts, 0) {
		harness.Fail("-counts: the picture's axes are logarithmic, so it begins with 1 pod, not 0")
	}
	const x = "pods in each informer"
	var row []chart.Panel
	ratios := chart.Panel{Title: "ours / client-go's", X: x, Y: "ratio of heaps", At: counts, Ratio: true, Legend: chart.BottomLeft}
	for _, g := range []struct {
		informers   int
		title, name string
		color       chart.Color
	}{
		{1, "one informer", "one informer", chart.Green},
		{s.informers, fmt.Sprintf("%d informers, %d pods in all at most", s.informers, s.most), fmt.Sprintf("each of %d", s.informers), chart.Blue},
	} {
		s.informers = g.informers
		table.Begin("heap, " + g.title)
		var heaps []harness.Figures // of both, for each count
		for _, each := range counts {
			medians := s.measurementOf(url, kinds[0], each).row(ctx, settings, each)
			heaps = append(heaps, medians[0].With("theirs.", medians[1]))
		}
		row = append(row, chart.Panel{Title: g.title, X: x, Y: "heap, MB", At: counts, Least: 1e-3, Legend: chart.TopLeft, Lines: []chart.Line{
			chart.LineOf(tributary, chart.Blue, heaps, "heap/informers/1e6"),
			chart.LineOf(clientGo, chart.Vermilion, heaps, "theirs.heap/informers/1e6"),
		}})
		ratios.Lines = append(ratios.Lines, chart.LineOf(g.name, g.color, heaps, "heap/theirs.heap"))
	}
	chart.Write(path, [][]chart.Panel{append(row, ratios)})
}
