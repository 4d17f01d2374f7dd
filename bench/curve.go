package main

import (
	"context"

	"github.com/tributary-go/tributary/bench/chart"
	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

// measureGrowth prints the first sync and the relist at each size, and plots them, a row each.
func measureGrowth(ctx context.Context, s settings) {
	var rows [][]chart.Panel
	for _, c := range []scenario{
		{name: "first sync, protobuf", reading: s.reading("sync", world.Protobuf)},
		{name: "relist, 1 % changed, protobuf", reading: s.reading("relist", world.Protobuf)},
	} {
		c.readers = two
		grown := make([][]harness.Figures, len(two)) // per reader, per size
		for _, c.Objects = range s.growth {
			medians := c.measure(ctx, s.Repeat)
			c.print(s, medians)
			for r, m := range medians {
				grown[r] = append(grown[r], m)
			}
		}
		var row []chart.Panel
		for _, axis := range []struct{ label, figure string }{{"wall, s", "wall"}, {"CPU, s", "cpu"}, {"peak heap, MB", "peak/1e6"}} {
			p := chart.Panel{Title: c.name, X: "objects", Y: axis.label, At: s.growth, Least: 1e-3, Legend: chart.TopLeft}
			for i, color := range []chart.Color{chart.Blue, chart.Vermilion, chart.Orange} {
				name := two[i].library
				if two[i].isClientGo() {
					name = "client-go " + name
				}
				p.Lines = append(p.Lines, chart.LineOf(name, color, grown[i], axis.figure))
			}
			row = append(row, p)
		}
		rows = append(rows, row)
	}
	chart.Write(s.curve, rows)
}
