package main

import (
	"context"
	"fmt"
	"image/color"

	"github.com/tributary-go/tributary/bench/chart"
	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

// axis is one figure that is plotted over the number of objects.
type axis struct {
	label, figure string
	unit          float64
}

var axes = []axis{
	{"wall, s", "wall", 1},
	{"CPU, s", "cpu", 1},
	{"peak heap, MB", "peak", 1e6},
}

// measureGrowth prints the first sync and the relist at each size, and plots them, a row each.
func measureGrowth(ctx context.Context, s settings) error {
	names := []string{"first sync, protobuf", "relist, 1 % changed, protobuf"}
	rows := make([][]chart.Panel, len(names))
	for i, name := range names {
		grown := make([][]harness.Figures, len(two)) // per reader, per size
		for _, size := range s.growth {
			c := scenario{name: name, what: "sync", form: world.Protobuf, objects: size, perSet: s.PerSet, readers: two}
			if i == 1 {
				c.what = "relist"
			}
			medians, err := c.measure(ctx, s)
			if err != nil {
				return fmt.Errorf("%s of %d: %w", name, size, err)
			}
			c.print(s, medians)
			for r, m := range medians {
				grown[r] = append(grown[r], m)
			}
		}
		for _, a := range axes {
			rows[i] = append(rows[i], panel(name, a, s.growth, grown))
		}
	}
	return chart.Write(s.curve, rows)
}

// panel has one figure of every reader.
func panel(title string, a axis, sizes []int, grown [][]harness.Figures) chart.Panel {
	p := chart.Panel{Title: title, X: "objects", Y: a.label, At: sizes, Least: 1e-3, Legend: chart.TopLeft}
	for i, r := range two {
		line := chart.Line{Name: r.library, Color: []color.Color{chart.Blue, chart.Vermilion, chart.Orange}[i]}
		if r.isClientGo() {
			line.Name = "client-go " + line.Name
		}
		for _, f := range grown[i] {
			line.Y = append(line.Y, f[a.figure]/a.unit)
		}
		p.Lines = append(p.Lines, line)
	}
	return p
}
