package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

// scenario is a measurement with a name: several libraries on one input.
type scenario struct {
	name    string
	what    string
	form    world.Form
	objects int
	perSet  int
	readers []reader
	variant
}

// variant is how a scenario differs from the main ones.
type variant struct {
	seldom  bool // one repetition and fewer events: client-go takes minutes, or it matters less
	indexed bool // either library's copy has two indexes, by namespace and node
	reads   bool // of the copies are measured, too
	handler handling
	kind    string // of the built-in objects, if they are not those of the settings
}

// reader is a library and how it is asked to read. The first one of a scenario is ours; ratios are
// to the best of client-go's.
type reader struct{ library, how string }

func (r reader) String() string { return r.library + ", " + r.how }

func (r reader) isClientGo() bool {
	return r.library == clientGoReflector || r.library == clientGoInformer
}

var (
	everyone = []reader{{interned, "watchlist"}, {interned, "list"}, {plain, "watchlist"}, {clientGoReflector, "watchlist"},
		{clientGoReflector, "list"}, {clientGoInformer, "watchlist"}, {clientGoInformer, "list"}}
	notPlain = slices.Concat(everyone[:2], everyone[3:])
	two      = []reader{{interned, "watchlist"}, {clientGoReflector, "watchlist"}, {clientGoInformer, "watchlist"}}
)

func scenarios(s settings) []scenario {
	const proto, json, tree = world.Protobuf, world.JSON, world.Tree
	variedIndexed := variant{kind: world.VariedPod, indexed: true}
	return []scenario{
		{"first sync, protobuf", "sync", proto, s.Pods, s.PerSet, everyone, variant{}},
		{"first sync, protobuf, two indexes", "sync", proto, s.Pods, s.PerSet, notPlain, variant{indexed: true}},
		{"first sync, protobuf, 3 pods per ReplicaSet", "sync", proto, s.Pods, 3, two, variant{seldom: true}},
		{"first sync, JSON", "sync", json, s.Pods, s.PerSet, notPlain[:4], variant{seldom: true}},
		{"first sync, unstructured", "sync", tree, s.Widgets, s.PerSet, notPlain[:4], variant{seldom: true}},
		{"relist, 1 % changed, protobuf", "relist", proto, s.Pods, s.PerSet, two, variant{}},
		{"watch, protobuf", "watch", proto, s.EventPods, s.PerSet, two, variant{}},
		{"watch, protobuf, two indexes", "watch", proto, s.EventPods, s.PerSet, two, variant{indexed: true}},
		{"first sync, protobuf, two indexes, pods that differ in more", "sync", proto, s.Pods, s.PerSet, notPlain, variedIndexed},
		{"watch, protobuf, two indexes, pods that differ in more", "watch", proto, s.EventPods, s.PerSet, two, variedIndexed},
		{"watch, JSON", "watch", json, s.EventPods, s.PerSet, two[:2], variant{seldom: true}},
	}
}

// printed measures a scenario, and prints its table.
func (c scenario) printed(ctx context.Context, s settings) {
	if c.seldom {
		s = s.rarely()
	}
	c.print(s, c.measure(ctx, s))
}

// measure returns, per reader, its medians.
func (c scenario) measure(ctx context.Context, s settings) []harness.Figures {
	s.PerSet, s.Pods = c.perSet, c.objects
	if c.kind != "" {
		s.Kind = c.kind
	}
	server := harness.Start(ctx, "serve", s)
	defer server.Stop()
	return harness.ByTurns(s.Repeat, c.readers, func(r reader) harness.Figures {
		server.Do(ctx, "/reset?form=%s", c.form)
		return s.read(ctx, r, reading{URL: server.URL(), Form: c.form, What: c.what, Indexed: c.indexed, Reads: c.reads, Handler: c.handler})
	})
}

// read has a library read in a process of its own, what the settings have.
func (s settings) read(ctx context.Context, by reader, r reading) harness.Figures {
	r.Library, r.How, r.Kind, r.Objects, r.Events, r.Cores = by.library, by.how, s.Kind, s.Pods, s.Events, s.Cores
	return harness.Measure(ctx, "read", r, r.env()...)
}

func (c scenario) print(s settings, medians []harness.Figures) {
	heading, size := "object", fmt.Sprintf("%d objects", c.objects)
	if c.what == "watch" {
		heading, size = "event", fmt.Sprintf("%d events over %d objects", s.Events, c.objects)
	}
	if c.seldom {
		size += ", " + s.repetitions()
	}
	table := harness.Table{Columns: []harness.Column{
		harness.Col("wall s", "%.2f", "wall"), harness.Col("CPU s", "%.2f", "cpu"), harness.Col("CPU us/"+heading, "%.1f", "cpu*1e6/per").Alone(),
		harness.Col("peak heap MB", "%.0f", "peak/1e6"), harness.Col("live heap B/object", "%.0f", "live/objects"),
		harness.Col("allocs/"+heading, "%.1f", "allocs/per"), harness.Col("shared", "%.0f %%", "shared*100").Alone(),
	}}
	table.Begin(c.name + " (" + size + ")")
	harness.Rows(table, c.readers, medians)
	table.Ratio(c.best(medians, false), c.best(medians, true), "**best of ours / best of client-go's**")
}

// best has the least of each figure of one side.
func (c scenario) best(medians []harness.Figures, clientGo bool) harness.Figures {
	least := harness.Figures{}
	for i, r := range c.readers {
		if r.isClientGo() != clientGo || r.library == plain {
			continue
		}
		for name, value := range medians[i] {
			if before, ok := least[name]; !ok || value < before {
				least[name] = value
			}
		}
	}
	return least
}

// peaks are the rows of the table of resident memory: of so many times the settings' pods, the
// stores and how they are filled.
var peaks = []struct {
	share   float64
	readers []reader
}{
	{1.76, []reader{{atRest, "watchlist"}, {atRest, "list"}, {interned, "watchlist"}, {clientGoReflector, "watchlist"}}},
	{10, []reader{{atRest, "watchlist"}, {atRest, "list"}}},
}

// measurePeaks prints the resident memory of processes until their copy of many pods is complete.
func measurePeaks(ctx context.Context, s settings) {
	table := harness.Table{Lead: "pods | store | by", Columns: []harness.Column{
		harness.Col("RSS", "%.0f", "rss/1048576"), harness.Col("before", "%.0f", "bare/1048576"), harness.Col("peak heap", "%.0f", "peak/1048576"),
		harness.Col("live heap", "%.0f", "live/1048576"), harness.Col("the rest", "%.0f", "rest/1048576"), harness.Col("CPU s", "%.1f", "cpu"),
	}}
	table.Begin("at rest: resident memory", "MiB of a process until its copy of pods, 50 of an owner, is complete; once each. "+
		"*RSS* is the peak (VmHWM), and *before* what the process had before it read. *Peak heap* is of its objects, dead ones included.")
	for _, p := range peaks {
		s := s
		s.Pods, s.PerSet, s.Repeat = int(float64(s.Pods)*p.share), 50, 1
		c := scenario{what: "sync", form: world.Protobuf, objects: s.Pods, perSet: 50, readers: p.readers}
		for i, f := range c.measure(ctx, s) {
			f["rest"] = f["rss"] - f["bare"] - f["peak"]
			table.Row(f, s.Pods, p.readers[i].library, p.readers[i].how)
		}
	}
}
