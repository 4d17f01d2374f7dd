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

func (r reader) isClientGo() bool { return r.library == "reflector" || r.library == "informer" }

var (
	everyone = []reader{{"tributary", "watchlist"}, {"tributary", "list"}, {"tributary-plain", "watchlist"},
		{"reflector", "watchlist"}, {"reflector", "list"}, {"informer", "watchlist"}, {"informer", "list"}}
	notPlain = slices.Concat(everyone[:2], everyone[3:]) // without tributary-plain
	two      = []reader{{"tributary", "watchlist"}, {"reflector", "watchlist"}, {"informer", "watchlist"}}
)

func scenarios(s settings) []scenario {
	const proto, json, tree = world.Protobuf, world.JSON, world.Tree
	varied := variant{kind: world.VariedPod}
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
		{"relist, 1 % changed, protobuf, pods that differ in more", "relist", proto, s.Pods, s.PerSet, two, varied},
		{"watch, protobuf, two indexes, pods that differ in more", "watch", proto, s.EventPods, s.PerSet, two, variedIndexed},
		{"watch, JSON", "watch", json, s.EventPods, s.PerSet, two[:2], variant{seldom: true}},
	}
}

// printed measures a scenario, and prints its table.
func (c scenario) printed(ctx context.Context, s settings) error {
	if c.seldom {
		s = s.rarely()
	}
	medians, err := c.measure(ctx, s)
	if err != nil {
		return err
	}
	c.print(s, medians)
	return nil
}

// measure returns, per reader, its medians.
func (c scenario) measure(ctx context.Context, s settings) (medians []harness.Figures, err error) {
	s.PerSet, s.Pods = c.perSet, c.objects
	if c.kind != "" {
		s.Kind = c.kind
	}
	err = s.withServer(ctx, func(url string) error {
		medians, err = harness.ByTurns(s.Repeat, c.readers, func(r reader) (harness.Figures, error) {
			return s.read(ctx, r, reading{URL: url, Form: c.form, What: c.what, Indexed: c.indexed, Reads: c.reads, Handler: c.handler})
		})
		return err
	})
	return medians, err
}

// withServer calls use with the address of a server, which it starts and stops.
func (s settings) withServer(ctx context.Context, use func(url string) error) error {
	server, err := harness.Start(ctx, "serve", s)
	if err != nil {
		return err
	}
	defer server.Stop()
	return use(server.URL())
}

// read has a library read in a process of its own, what the settings have.
func (s settings) read(ctx context.Context, by reader, r reading) (harness.Figures, error) {
	r.Library, r.How, r.Kind, r.Objects, r.Events, r.Cores = by.library, by.how, s.Kind, s.Pods, s.Events, s.Cores
	if r.Kubeconfig == "" {
		if err := harness.Do(ctx, r.URL+"/reset?form="+string(r.Form)); err != nil {
			return nil, err
		}
	}
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
	for i, m := range medians {
		table.Row(m, c.readers[i])
	}
	table.Ratio(c.best(medians, false), c.best(medians, true), "**best of ours / best of client-go's**")
}

// best has the least of each figure of one side.
func (c scenario) best(medians []harness.Figures, clientGo bool) harness.Figures {
	least := harness.Figures{}
	for i, r := range c.readers {
		if r.isClientGo() != clientGo || r.library == "tributary-plain" {
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
	{1.76, []reader{{atRest, "watchlist"}, {atRest, "list"}, {"tributary", "watchlist"}, {"reflector", "watchlist"}}},
	{10, []reader{{atRest, "watchlist"}, {atRest, "list"}}},
}

// measurePeaks prints the resident memory of processes until their copy of many pods is complete.
func measurePeaks(ctx context.Context, s settings) error {
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
		medians, err := c.measure(ctx, s)
		if err != nil {
			return err
		}
		for i, f := range medians {
			f["rest"] = f["rss"] - f["bare"] - f["peak"]
			table.Row(f, s.Pods, p.readers[i].library, p.readers[i].how)
		}
	}
	return nil
}
