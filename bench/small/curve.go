package main

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"slices"

	"github.com/tributary-go/tributary/bench/chart"
)

// grow measures the heap of an informer of pods over their number, and plots it: of an informer
// alone, of many that share their kind, and ours as a part of client-go's.
func (s settings) grow(ctx context.Context, url string) error {
	s.only = "" // -counts chooses the rows
	counts := s.counts
	switch {
	case counts != nil:
	case s.quick:
		counts = []int{1, 3, 20}
	default:
		counts = []int{1, 3, 10, 20, 50, 110, 300, 1000, 5000, 50_000}
	}
	if slices.Contains(counts, 0) {
		return errors.New("-counts: the picture's axes are logarithmic, so it begins with 1 pod, not 0")
	}
	const x = "pods in each informer"
	var heaps []chart.Panel
	ratios := chart.Panel{Title: "ours / client-go's", X: x, Y: "ratio of heaps", At: counts, Linear: true, Legend: chart.BottomLeft}
	for _, group := range []struct {
		informers   int
		title, name string
		color       color.Color
	}{
		{1, "one informer", "one informer", chart.Green},
		{s.informers, fmt.Sprintf("%d informers, %d pods at most", s.informers, s.most), fmt.Sprintf("each of %d", s.informers), chart.Blue},
	} {
		s.informers = group.informers
		fmt.Printf("\n### heap, %s\n\n%s", group.title, heading)
		heap := chart.Panel{Title: group.title, X: x, Y: "heap, KB", At: counts, Least: 1, Legend: chart.TopLeft,
			Lines: []chart.Line{{Name: libraries[0], Color: chart.Blue}, {Name: libraries[1], Color: chart.Vermilion}}}
		ratio := chart.Line{Name: group.name, Color: group.color}
		for _, each := range counts {
			medians, err := s.row(ctx, fmt.Sprint(each), s.measurementOf(url, kinds[0], each))
			if err != nil {
				return fmt.Errorf("%s, %d pods: %w", group.title, each, err)
			}
			for i := range libraries {
				heap.Lines[i].Y = append(heap.Lines[i].Y, medians[i])
			}
			ratio.Y = append(ratio.Y, medians[0]/medians[1])
		}
		heaps, ratios.Lines = append(heaps, heap), append(ratios.Lines, ratio)
	}
	return chart.Write(s.curve, [][]chart.Panel{append(heaps, ratios)})
}
