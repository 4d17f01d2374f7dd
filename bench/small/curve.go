package main

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"slices"

	"github.com/tributary-go/tributary/bench/chart"
	"github.com/tributary-go/tributary/bench/harness"
)

// grow measures the heap of an informer of pods over their number, and plots it: of an informer
// alone, of many that share their kind, and ours as a part of client-go's.
func (s sizes) grow(ctx context.Context, settings harness.Settings, url, path string) error {
	counts := s.counts
	switch {
	case counts != nil:
	case s.quick:
		counts = []int{1, 3, 20}
	default:
		counts = []int{1, 3, 6, 10, 20, 50, 110, 300, 1000, 5000, 50_000}
	}
	if slices.Contains(counts, 0) {
		return errors.New("-counts: the picture's axes are logarithmic, so it begins with 1 pod, not 0")
	}
	groups := []group{
		{informers: 1, title: "one informer", name: "one informer", color: chart.Green},
		{informers: s.informers, title: fmt.Sprintf("%d informers, %d pods in all at most", s.informers, s.most), name: fmt.Sprintf("each of %d", s.informers), color: chart.Blue},
	}
	for i := range groups {
		g := &groups[i]
		s.informers = g.informers
		table.Begin("heap, " + g.title)
		for _, each := range counts {
			medians, err := s.measurementOf(url, kinds[0], each).row(ctx, settings, each)
			if err != nil {
				return fmt.Errorf("%s, %d pods: %w", g.title, each, err)
			}
			g.heaps = append(g.heaps, medians)
		}
	}
	return draw(path, counts, groups)
}

// group is a number of informers as a diagram.
type group struct {
	informers   int
	title, name string
	color       color.Color
	heaps       [][]float64 // for each count, those of the libraries in bytes
}

// draw has a diagram of each group, and one of the ratios of all.
func draw(path string, counts []int, groups []group) error {
	const x = "pods in each informer"
	var row []chart.Panel
	ratios := chart.Panel{Title: "ours / client-go's", X: x, Y: "ratio of heaps", At: counts, Ratio: true, Legend: chart.BottomLeft}
	for _, g := range groups {
		heap := chart.Panel{Title: g.title, X: x, Y: "heap, MB", At: counts, Least: 1e-3, Legend: chart.TopLeft,
			Lines: []chart.Line{{Name: libraries[0], Color: chart.Blue}, {Name: libraries[1], Color: chart.Vermilion}}}
		ratio := chart.Line{Name: g.name, Color: g.color}
		for _, heaps := range g.heaps {
			for i := range libraries {
				heap.Lines[i].Y = append(heap.Lines[i].Y, heaps[i]/1e6)
			}
			ratio.Y = append(ratio.Y, heaps[0]/heaps[1])
		}
		row, ratios.Lines = append(row, heap), append(ratios.Lines, ratio)
	}
	return chart.Write(path, [][]chart.Panel{append(row, ratios)})
}
