package main

import (
	"context"
	"fmt"
	"image/color"
	"math"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// axis is one figure that is plotted over the number of objects.
type axis struct {
	label string
	of    func(figures) float64
}

var axes = []axis{
	{"wall, s", func(f figures) float64 { return f.Wall }},
	{"CPU, s", func(f figures) float64 { return f.CPU }},
	{"peak heap, MB", func(f figures) float64 { return f.Peak / 1e6 }},
}

// measureGrowth prints the first sync and the relist at each size, and plots them: a row each, both
// axes logarithmic, so that what grows linearly is a line that climbs one decade in a decade.
func measureGrowth(ctx context.Context, s settings) error {
	rows := []string{"first sync, protobuf", "relist, 1 % changed, protobuf"}
	panels := make([][]*plot.Plot, len(rows))
	for i, name := range rows {
		grown := make([][]figures, len(two)) // per reader, per size
		for _, size := range s.growth {
			c := scenario{name: name, what: "sync", form: protobuf, objects: size, perSet: s.perSet, readers: two}
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
			p, err := panel(name, a, s.growth, grown)
			if err != nil {
				return err
			}
			panels[i] = append(panels[i], p)
		}
	}
	return write(s.curve, panels)
}

// panel plots one figure of every reader.
func panel(title string, a axis, sizes []int, grown [][]figures) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "objects", a.label
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = decades{}, decades{}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	colors := []color.Color{color.RGBA{R: 0, G: 114, B: 178, A: 255}, color.RGBA{R: 213, G: 94, B: 0, A: 255}, color.RGBA{R: 230, G: 159, B: 0, A: 255}}
	for i, of := range grown {
		points := make(plotter.XYs, len(sizes))
		for j, size := range sizes {
			// A logarithm has no zero.
			points[j] = plotter.XY{X: float64(size), Y: max(a.of(of[j]), 1e-3)}
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width, dots.Color, dots.Shape = colors[i], vg.Points(1.5), colors[i], draw.CircleGlyph{}
		p.Add(line, dots)
		name := two[i].library
		if two[i].isClientGo() {
			name = "client-go " + name
		}
		p.Legend.Add(name, line, dots)
	}
	p.Y.Min, p.Y.Max = math.Pow(10, math.Floor(math.Log10(p.Y.Min))), math.Pow(10, math.Ceil(math.Log10(p.Y.Max)))
	return p, nil
}

// decades marks the powers of ten, and labels no others.
type decades struct{}

func (decades) Ticks(low, high float64) []plot.Tick {
	ticks := plot.LogTicks{}.Ticks(low, high)
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = strconv.FormatFloat(t.Value, 'g', 6, 64)
		}
	}
	return ticks
}

// write draws the panels as a table.
func write(path string, panels [][]*plot.Plot) error {
	canvas := vgsvg.New(12*vg.Inch, 7*vg.Inch)
	tiles := draw.Tiles{Rows: len(panels), Cols: len(panels[0]), PadX: vg.Points(12), PadY: vg.Points(12), PadTop: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(6)}
	for i, row := range plot.Align(panels, tiles, draw.New(canvas)) {
		for j, at := range row {
			panels[i][j].Draw(at)
		}
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
