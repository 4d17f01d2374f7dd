package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-go/tributary/bench/world"
)

// ratio is a column of the table of kinds.
type ratio struct {
	heading string
	less    bool // is worse
}

var ratios = []ratio{
	{"sync: wall", false}, {"CPU", false}, {"peak", false}, {"live", false}, {"plain: CPU", false},
	{"watch: events/s", true}, {"CPU", false}, {"peak", false}, {"live", false}, {"plain: CPU", false},
}

// measureKinds prints one row of ratios for each kind: ours, in its default form, to client-go's.
// The last row has the worst of each column.
func measureKinds(ctx context.Context, s settings) error {
	s.pods = max(100, s.pods/5)
	s.widgets = s.pods
	fmt.Printf("\n### kinds\n\nOurs to client-go's reflector, both with a watch list; *plain* is ours without sharing. %d objects, of which each "+
		"changes twice; of the large kinds a hundredth, and 30 changes of each. %s.\n\n| kind | B/object |", s.pods, s.repetitions())
	for _, r := range ratios {
		fmt.Print(" ", r.heading, " |")
	}
	fmt.Println(" shared |\n" + strings.Repeat("|---", len(ratios)+3) + "|")
	var worst []float64
	for _, kind := range append([]world.Kind{{Name: "Pod"}, {Name: world.WidgetKind}}, world.Kinds...) {
		if s.kind != "" && s.kind != kind.Name {
			continue
		}
		size, row, shared, err := s.measureKind(ctx, kind)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.Name, err)
		}
		fmt.Printf("| %s | %d |%s %.0f %% |\n", kind.Name, size, cells(row, "%.2f"), 100*shared)
		if worst == nil {
			worst = slices.Clone(row)
		}
		for i, r := range ratios {
			if r.less == (row[i] < worst[i]) {
				worst[i] = row[i]
			}
		}
	}
	fmt.Printf("| **worst** | |%s |\n", cells(worst, "**%.2f**"))
	return nil
}

func cells(row []float64, format string) string {
	var b strings.Builder
	for _, value := range row {
		fmt.Fprintf(&b, " "+format+" |", value)
	}
	return b.String()
}

// measureKind returns the size of an object on the wire, a row of ratios, and the share of the
// wire's bytes that were not decoded again.
func (s settings) measureKind(ctx context.Context, kind world.Kind) (size int, row []float64, shared float64, err error) {
	s.kind, s.events = kind.Name, 2*s.pods
	if kind.Large {
		s.pods /= 100
		s.events = 30 * s.pods
	}
	s.eventPods = s.pods
	form := world.Protobuf
	if kind.Name == world.WidgetKind {
		form = world.Tree
	}
	for _, what := range []string{"sync", "watch"} {
		c := scenario{what: what, form: form, objects: s.pods, perSet: s.perSet,
			readers: []reader{{"tributary", "watchlist"}, {"tributary-plain", "watchlist"}, {"reflector", "watchlist"}}}
		medians, err := c.measure(ctx, s)
		if err != nil {
			return 0, nil, 0, err
		}
		ours, plain, theirs := medians[0], medians[1], medians[2]
		wall := ours.Wall / theirs.Wall
		if what == "watch" {
			wall = 1 / wall
		}
		row = append(row, wall, ours.CPU/theirs.CPU, ours.Peak/theirs.Peak, ours.Live/theirs.Live, plain.CPU/theirs.CPU)
		shared = ours.Hits
	}
	return len(world.CodecOf(s.kind, s.perSet, form).Object(0, 0, 0)), row, shared, nil
}
