package chart_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/bench/chart"
)

func TestAPictureNamesItsLinesAndDecades(t *testing.T) {
	path := filepath.Join(t.TempDir(), "growth.svg")
	lines := []chart.Line{{Name: "ours", Color: chart.Blue, Y: []float64{0, 30, 7000}}, {Name: "theirs", Color: chart.Orange, Y: []float64{20, 90, 25_000}}}
	at := []int{1, 10, 50_000}
	chart.Write(path, [][]chart.Panel{{
		{Title: "growth", X: "objects", Y: "heap, KB", At: at, Lines: lines, Least: 1, Legend: chart.TopLeft},
		{Title: "ratio", X: "objects", Y: "heap", At: at, Ratio: true, Lines: []chart.Line{{Name: "alone", Color: chart.Green, Y: []float64{1.1, 0.5, 0.3}}}},
	}})
	svg, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, text := range []string{"growth", "ours", "theirs", "alone", "heap, KB", "10000", "100000", "1.5", "</svg>"} {
		require.Contains(t, string(svg), text)
	}
}
