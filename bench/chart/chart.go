// Package chart draws the pictures of the benchmarks: figures over a number of objects or watchers.
// It is apart from the harness, since its fonts are in the memory of each process that imports it.
package chart

import (
	"bytes"
	"image/color"
	"math"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/tributary-go/tributary/bench/harness"
)

// Color is that of a line.
type Color = color.RGBA

// Colors that differ for the colour-blind, too.
var (
	Blue      = Color{G: 114, B: 178, A: 255}
	Vermilion = Color{R: 213, G: 94, A: 255}
	Orange    = Color{R: 230, G: 159, A: 255}
	Green     = Color{G: 158, B: 115, A: 255}
)

// Line is a figure over the X of its panel.
type Line struct {
	Name  string
	Color Color
	Y     []float64
}

// LineOf is a line of a [harness.Figures.Value] of each.
func LineOf(name string, in Color, each []harness.Figures, product string) Line {
	line := Line{Name: name, Color: in}
	for _, f := range each {
		value, _ := f.Value(product)
		line.Y = append(line.Y, value)
	}
	return line
}

// Panel is one diagram.
type Panel struct {
	Title, X, Y string // of the diagram and its axes
	At          []int
	Lines       []Line
	// Least is drawn in place of smaller figures. A logarithm has no zero.
	Least float64
	// Ratio is a Y axis from zero to at least 1. The other axes are logarithmic, so that linear
	// growth climbs one decade in a decade.
	Ratio bool
	// Legend is its corner.
	Legend Corner
}

// Corner is a place in a diagram.
type Corner int

const (
	BottomRight Corner = iota
	BottomLeft
	TopLeft
)

func (p Panel) plot() *plot.Plot {
	to := plot.New()
	to.Title.Text, to.X.Label.Text, to.Y.Label.Text = p.Title, p.X, p.Y
	to.X.Scale, to.X.Tick.Marker = plot.LogScale{}, decades{}
	to.Legend.Top, to.Legend.Left = p.Legend == TopLeft, p.Legend != BottomRight
	to.Add(plotter.NewGrid())
	for _, l := range p.Lines {
		points := make(plotter.XYs, len(p.At))
		for i, at := range p.At {
			points[i] = plotter.XY{X: float64(at), Y: max(l.Y[i], p.Least)}
		}
		line, dots, err := plotter.NewLinePoints(points)
		harness.Check(err)
		line.Color, line.Width, dots.Color, dots.Shape = l.Color, vg.Points(1.5), l.Color, draw.CircleGlyph{}
		to.Add(line, dots)
		to.Legend.Add(l.Name, line, dots)
	}
	if p.Ratio {
		to.Y.Min, to.Y.Max, to.Y.Tick.Marker = 0, max(1, math.Ceil(2*to.Y.Max)/2), halves{}
		return to
	}
	to.Y.Scale, to.Y.Tick.Marker = plot.LogScale{}, decades{}
	to.Y.Min, to.Y.Max = math.Pow(10, math.Floor(math.Log10(to.Y.Min))), math.Pow(10, math.Ceil(math.Log10(to.Y.Max)))
	return to
}

// Write writes rows of panels, each row as long as the first, into an SVG file. The ground is
// white, so that dark pages can show it.
func Write(path string, rows [][]Panel) {
	plots := make([][]*plot.Plot, len(rows))
	for i, row := range rows {
		for _, panel := range row {
			plots[i] = append(plots[i], panel.plot())
		}
	}
	canvas := vgsvg.New(12*vg.Inch, vg.Length(len(rows))*3.5*vg.Inch)
	tiles := draw.Tiles{Rows: len(rows), Cols: len(rows[0]), PadX: vg.Points(12), PadY: vg.Points(12), PadTop: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(6)}
	ground := draw.New(canvas)
	ground.SetColor(color.White)
	ground.Fill(ground.Path())
	for i, row := range plot.Align(plots, tiles, ground) {
		for j, at := range row {
			plots[i][j].Draw(at)
		}
	}
	var svg bytes.Buffer
	harness.Must(canvas.WriteTo(&svg))
	harness.Check(os.WriteFile(path, bytes.ReplaceAll(svg.Bytes(), []byte(font), []byte(fonts)), 0o644))
}

// font places the texts. Few machines have it; Times has the same widths.
const (
	font  = "font-family:Liberation Serif;"
	fonts = "font-family:Liberation Serif,Times New Roman,Times,serif;"
)

// halves marks each half, and labels it.
type halves struct{}

func (halves) Ticks(low, high float64) (ticks []plot.Tick) {
	for at := low; at <= high; at += 0.5 {
		ticks = append(ticks, plot.Tick{Value: at, Label: strconv.FormatFloat(at, 'f', 1, 64)})
	}
	return ticks
}

// decades marks the powers of ten, and labels no others.
type decades struct{}

func (decades) Ticks(low, high float64) []plot.Tick {
	ticks := plot.LogTicks{}.Ticks(low, high)
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = strconv.FormatFloat(t.Value, 'f', -1, 64)
		}
	}
	return ticks
}
