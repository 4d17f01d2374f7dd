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
	name string
	reading
	readers []reader
	seldom  bool // one repetition and fewer events: client-go takes minutes, or it matters less
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

// reading is one of all objects of the settings.
func (s settings) reading(what string, form world.Form) reading {
	r := reading{What: what, Form: form, Kind: s.Kind, PerSet: s.PerSet, Objects: s.Pods, Events: s.Events}
	switch {
	case what == "watch":
		r.Objects = s.EventPods
	case form == world.Tree:
		r.Objects = s.Widgets
	}
	return r
}

func scenarios(s settings) []scenario {
	sync, watch := s.reading("sync", world.Protobuf), s.reading("watch", world.Protobuf)
	syncIndexed, watchIndexed, fewOfAnOwner := sync, watch, sync
	syncIndexed.Indexed, watchIndexed.Indexed, fewOfAnOwner.PerSet = true, true, 3
	syncVaried, watchVaried := syncIndexed, watchIndexed
	syncVaried.Kind, watchVaried.Kind = world.VariedPod, world.VariedPod
	return []scenario{
		{"first sync, protobuf", sync, everyone, false},
		{"first sync, protobuf, two indexes", syncIndexed, notPlain, false},
		{"first sync, protobuf, 3 pods per ReplicaSet", fewOfAnOwner, two, true},
		{"first sync, JSON", s.reading("sync", world.JSON), notPlain[:4], true},
		{"first sync, unstructured", s.reading("sync", world.Tree), notPlain[:4], true},
		{"relist, 1 % changed, protobuf", s.reading("relist", world.Protobuf), two, false},
		{"watch, protobuf", watch, two, false},
		{"watch, protobuf, two indexes", watchIndexed, two, false},
		{"first sync, protobuf, two indexes, pods that differ in more", syncVaried, notPlain, false},
		{"watch, protobuf, two indexes, pods that differ in more", watchVaried, two, false},
		{"watch, JSON", s.reading("watch", world.JSON), two[:2], true},
	}
}

// printed measures a scenario, and prints its table.
func (c scenario) printed(ctx context.Context, s settings) {
	if c.seldom {
		s.Repeat, c.Events = (s.Repeat+2)/3, c.Events/4
	}
	c.print(s, c.measure(ctx, s.Repeat))
}

// measure returns, per reader, its medians.
func (c scenario) measure(ctx context.Context, repeat int) []harness.Figures {
	server := harness.Start(ctx, "serve", c.reading)
	defer server.Stop()
	c.URL = server.URL()
	return harness.ByTurns(repeat, c.readers, func(r reader) harness.Figures {
		server.Do(ctx, "/reset")
		return c.reading.by(ctx, r)
	})
}

// by has a library read in a process of its own.
func (r reading) by(ctx context.Context, by reader) harness.Figures {
	r.Library, r.How = by.library, by.how
	return harness.Measure(ctx, "read", r, r.env()...)
}

func (c scenario) print(s settings, medians []harness.Figures) {
	heading, size := "object", fmt.Sprintf("%d objects", c.Objects)
	if c.What == "watch" {
		heading, size = "event", fmt.Sprintf("%d events over %d objects", c.Events, c.Objects)
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
		c := scenario{reading: s.reading("sync", world.Protobuf), readers: p.readers}
		c.Objects, c.PerSet = int(float64(s.Pods)*p.share), 50
		for i, f := range c.measure(ctx, 1) {
			f["rest"] = f["rss"] - f["bare"] - f["peak"]
			table.Row(f, c.Objects, p.readers[i].library, p.readers[i].how)
		}
	}
}
