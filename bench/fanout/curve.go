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
var colors = []color.Color{
	color.RGBA{R: 213, G: 94, A: 255}, color.RGBA{G: 114, B: 178, A: 255}, color.RGBA{G: 158, B: 115, A: 255}, color.Gray{Y: 140}, color.Gray{Y: 190},
}

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

// plotCurve draws figures per library and count. Both axes are logarithmic.
func plotCurve(path string, counts []int, grown map[string][]figures) error {
	panels := [][]*plot.Plot{nil}
	for _, a := range axes {
		p := plot.New()
		p.X.Label.Text, p.Y.Label.Text = "watchers", a.label
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = decades{}, decades{}
		p.Add(plotter.NewGrid())
		for i, library := range (load{}).libraries() {
			points := make(plotter.XYs, len(counts))
			for j, watchers := range counts {
				points[j] = plotter.XY{X: float64(watchers), Y: max(a.of(grown[library][j]), 0.1)}
			}
			line, dots, err := plotter.NewLinePoints(points)
			if err != nil {
				return err
			}
			line.Color, line.Width = colors[i], vg.Points(1.5)
			dots.Color, dots.Shape = line.Color, draw.CircleGlyph{}
			p.Add(line, dots)
			p.Legend.Add(names[library], line, dots)
		}
		p.Y.Min, p.Y.Max = math.Pow(10, math.Floor(math.Log10(p.Y.Min))), math.Pow(10, math.Ceil(math.Log10(p.Y.Max)))
		panels[0] = append(panels[0], p)
	}
	canvas := vgsvg.New(12*vg.Inch, 3.5*vg.Inch)
	tiles := draw.Tiles{Rows: 1, Cols: len(axes), PadX: vg.Points(12), PadTop: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(6)}
	for j, at := range plot.Align(panels, tiles, draw.New(canvas))[0] {
		panels[0][j].Draw(at)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(file); err != nil {
		_ = file.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	return file.Close()
}

// decades marks the powers of ten, and labels no others.
type decades struct{}

func (decades) Ticks(low, high float64) []plot.Tick {
	ticks := plot.LogTicks{}.Ticks(low, high)
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = strconv.FormatFloat(t.Value, 'f', 0, 64)
		}
	}
	return ticks
}
