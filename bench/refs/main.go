package main

import (
	"context"
	"fmt"

	"github.com/tributary-go/tributary/bench/harness"
)

// world says what there is and what is read. It is the task of each process.
type world struct {
	Secrets  int
	Size     int // bytes of each
	Referred int
	Names    int
	Churn    int // changes of the other Secrets
	Nodes    int
	Library  string
	Server   string
	Control  string // of the server
}

var full = world{Secrets: 33_493, Size: 10_000, Referred: 50, Names: 10_000, Nodes: 50_000}

func main() {
	harness.Main(3, harness.Roles{"serve": harness.Acts(serve), "read": harness.Measures(read)}, measure)
}

func measure(ctx context.Context, s harness.Settings) {
	if s.Quick {
		full = world{Secrets: 500, Size: 10_000, Referred: 5, Names: 200, Nodes: 500}
	}
	s.Each(ctx, harness.Part{Name: "names", Measure: measureNames}, harness.Part{Name: "memory", Measure: measureMemory},
		harness.Part{Name: "churn", Measure: measureChurn}, harness.Part{Name: "nodes", Measure: measureNodes})
}

// measureNames is the cost of names without their objects.
func measureNames(ctx context.Context, s harness.Settings) {
	table := harness.Table{Lead: "| names", Columns: []harness.Column{
		harness.Col("all started after s", "%.1f", "wall"),
		harness.Col("most that waited for their state", "%.0f", "waiting"),
		harness.Col("connections", "%.0f", "connections"),
		harness.Col("KB a name: heap", "%.1f", "more.heap/1e3/names"),
		harness.Col("stacks", "%.1f", "more.stacks/1e3/names"),
		harness.Col("RSS", "%.1f", "more.rss/1e3/names"),
		harness.Col("goroutines a name", "%.2f", "more.goroutines/names"),
		harness.Col("CPU ms a name", "%.2f", "more.cpu*1e3/names"),
	}}
	table.Begin("names without objects")
	empty := world{Size: full.Size}
	base := empty.median(ctx, s, bare)
	for _, names := range []int{full.Names / 10, full.Names} {
		for _, library := range []string{followed, watched, kubelet} {
			if library == kubelet && names > 1000 {
				continue // all at once, they dial more connections than the machine has ports
			}
			row := empty
			row.Names = names
			f := row.median(ctx, s, library)
			f["names"] = float64(names)
			table.Row(f.With("more.", f.Since(base)), library, names)
		}
	}
}

// measureMemory is a program that refers to a few of many Secrets.
func measureMemory(ctx context.Context, s harness.Settings) {
	w := full
	w.Nodes = 0
	w.measureReads(ctx, s, fmt.Sprintf("%d of %d Secrets of %d bytes", w.Referred, w.Secrets, w.Size), referred, clientGo)
}

// measureNodes is a program that looks up one Node by its name.
func measureNodes(ctx context.Context, s harness.Settings) {
	w := full
	w.Secrets = 0
	w.measureReads(ctx, s, fmt.Sprintf("1 of %d Nodes", w.Nodes), oneNode, allNodes)
}

// measureReads measures libraries beside the bare program, once each has read what it wants.
func (w world) measureReads(ctx context.Context, s harness.Settings, title string, libraries ...string) {
	table := harness.Table{Columns: []harness.Column{
		harness.Col("live heap MB", "%.1f", "heap/1e6"),
		harness.Col("RSS MB", "%.1f", "rss/1e6"),
		harness.Col("RSS over the bare program", "%.1f", "more.rss/1e6"),
		harness.Col("peak RSS MB", "%.1f", "peak/1e6"),
		harness.Col("all read after ms", "%.0f", "wall*1e3"),
		harness.Col("read from the network MB", "%.1f", "read/1e6"),
	}}
	table.Begin(title)
	var base harness.Figures
	for _, library := range append([]string{bare}, libraries...) {
		f := w.median(ctx, s, library)
		if library == bare {
			base = f
		}
		table.Row(f.With("more.", f.Since(base)), library)
	}
}

// measureChurn measures the cost of changes of other objects.
func measureChurn(ctx context.Context, s harness.Settings) {
	w := full
	w.Nodes = 0
	w.Secrets, w.Churn = max(w.Secrets/30, w.Referred+100), max(w.Secrets/3, 1000)
	table := harness.Table{Columns: []harness.Column{
		harness.Col("CPU µs a change", "%.1f", "churnCPU*1e6/changes"),
		harness.Col("bytes a change", "%.0f", "churnRead/changes"),
	}}
	table.Begin(fmt.Sprintf("%d changes of other Secrets of %d bytes, of %d", w.Churn, w.Size, w.Secrets))
	for _, library := range []string{bare, referred, shared, clientGo} {
		f := w.median(ctx, s, library)
		f["changes"] = float64(w.Churn)
		table.Row(f, library)
	}
}

// median measures a library in processes of their own, on a server of its own.
func (w world) median(ctx context.Context, s harness.Settings, library string) harness.Figures {
	server := harness.Start(ctx, "serve", w)
	defer server.Stop()
	w.Library, w.Server, w.Control = library, server.URL(), server.Control()
	return harness.Repeated(s.Repeat, library, func(string) harness.Figures { return harness.Measure(ctx, "read", w) })
}
