package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

// measureReads reads a copy: many objects once, some again and again, and all. Times are in
// microseconds: of Get (cold, p99, hot) by the clock, of all objects and by an index of namespaces
// of the CPU, per object.
func measureReads(copy copied) harness.Figures {
	const lookups = 3000
	f := harness.Figures{}
	f["gc"] = micros(func() {
		for range 3 {
			runtime.GC()
		}
	}) / 3000 // milliseconds of a whole collection
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	f["heapObjects"] = float64(memory.HeapObjects)
	keys := copy.keys()
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	var times []float64
	for _, key := range keys[:min(lookups, len(keys))] {
		began := time.Now()
		copy.get(key)
		times = append(times, float64(time.Since(began).Nanoseconds())/1000)
	}
	f["cold"], f["p99"] = harness.Median(times), harness.Quantile(times, 0.99)
	f["hot"] = hotRead(copy, keys[:min(100, len(keys))])
	all := 0
	f["all"] = micros(func() { all = copy.all() })
	f["all"] /= float64(max(1, all))
	read := copy.indexed()
	found := 0
	f["index"] = micros(func() {
		for namespace := range namespaces(keys) {
			found += read(namespace)
		}
	})
	f["index"] /= float64(max(1, found))
	return f
}

// hotRead is the median of rounds that read the same few objects.
func hotRead(copy copied, keys []string) float64 {
	const rounds, each = 21, 20_000
	var times []float64
	for range rounds {
		began := time.Now()
		for i := range each {
			copy.get(keys[i%len(keys)])
		}
		times = append(times, float64(time.Since(began).Nanoseconds())/1000/each)
	}
	return harness.Median(times)
}

func namespaces(keys []string) map[string]bool {
	of := map[string]bool{}
	for _, key := range keys {
		namespace, _, _ := strings.Cut(key, "/")
		of[namespace] = true
	}
	return of
}

// micros is the CPU time of the process during work.
func micros(work func()) float64 {
	began := harness.CPU()
	work()
	return float64((harness.CPU() - began).Microseconds())
}

// restKind is a row of the tables.
type restKind struct {
	name, kind string
	form       world.Form
	perSet     int
	share      int  // of the settings' number of pods: 1/share
	handled    bool // its events are measured with handlers
	library    string
}

var restKinds = []restKind{
	{"pods, 50 per owner", "", world.Protobuf, 50, 1, true, atRest},
	{"pods, 3 per owner", "", world.Protobuf, 3, 5, false, atRest},
	{"pods that differ in more", world.VariedPod, world.Protobuf, 50, 5, true, atRest},
	{"pods of random strings", "Pod of random strings", world.Protobuf, 50, 5, false, atRest},
	{"custom resources, JSON", "", world.Tree, 50, 5, true, atRest},
	{"Leases", "Lease", world.Protobuf, 50, 5, false, atRest},
	{"ConfigMaps of text, 20 KB", "ConfigMap of text", world.Protobuf, 50, 25, true, atRest},
	{"the same, zstd", "ConfigMap of text", world.Protobuf, 50, 25, true, coded},
	{"Secrets of text, 4 KB", "Secret of text", world.Protobuf, 50, 10, false, atRest},
	{"Secrets of PEM, 4 KB", "Secret of PEM", world.Protobuf, 50, 10, false, atRest},
	{"Secrets, random, 4 KB", "Secret", world.Protobuf, 50, 10, false, atRest},
	{"pods as of kubernetes#141683", "Pod as of kubernetes#141683", world.Protobuf, 50, 5, false, atRest},
	{"pods as of kubernetes#141341, JSON", world.TreePod, world.Tree, 50, 16, false, atRest},
}

// three are the columns of a figure of packed, interned and client-go, and if to is not empty, that
// of packed to one of them.
func three(heading, format, what, figure, to string) (columns []harness.Column) {
	for i, form := range forms {
		if i == 0 {
			heading += ": packed"
		} else {
			heading = form
		}
		columns = append(columns, harness.Col(heading, format, form+"."+what+"."+figure))
	}
	if to != "" {
		of, _, _ := strings.Cut(strings.ReplaceAll(figure, "*", "/"), "/") // without its unit
		columns = append(columns, harness.Col("to "+to, "%.3f", fmt.Sprintf("packed.%[1]s.%[2]s/%[3]s.%[1]s.%[2]s", what, of, to)))
	}
	return columns
}

// forms are those of a copy, in the order of the readers of a row.
var forms = []string{"packed", "interned", "client-go"}

var restTables = []struct {
	name, note string
	columns    []harness.Column
}{
	{"at rest: heap and first sync", "The heap of one copy, and the CPU time of its process. Bytes are per object, and the CPU in us per object.", slices.Concat(
		three("live B", "%.0f", "sync", "live/objects", "client-go"),
		three("peak B", "%.0f", "sync", "peak/objects", ""),
		three("CPU us", "%.1f", "sync", "cpu*1e6/objects", "interned"),
		three("GC ms", "%.1f", "sync", "gc", "client-go"),
		three("heap objects", "%.1f", "sync", "heapObjects/objects", ""),
	)},
	{"at rest: changes", "CPU in us, per object of a relist with 1 % changed, and per event. The handlers read the key, the labels of the new object, and the objects before and after.", slices.Concat(
		three("relist", "%.1f", "relist", "cpu*1e6/objects", "interned"),
		three("no handler", "%.1f", "watch", "cpu*1e6/events", ""),
		three("key", "%.1f", string(byKey), "cpu*1e6/events", "interned"),
		three("labels", "%.1f", string(byMetadata), "cpu*1e6/events", "interned"),
		three("before and after", "%.1f", string(wholly), "cpu*1e6/events", "interned"),
	)},
	{"at rest: reads", "Get in us of the clock; by index and all in us of CPU per object.", slices.Concat(
		three("Get, cold", "%.1f", "sync", "cold", ""), three("cold p99", "%.1f", "sync", "p99", ""), three("hot", "%.3f", "sync", "hot", "interned"),
		three("by index", "%.2f", "sync", "index", ""), three("all", "%.2f", "sync", "all", ""),
	)},
}

// restRow has the figures of a kind, by the form and the measurement.
type restRow struct {
	name    string
	objects int
	figures harness.Figures
}

// measureRest prints the size of a copy at rest as bytes, interned and in client-go, and the cost
// to fill, to follow and to read each.
func measureRest(ctx context.Context, s settings) {
	var rows []restRow
	failed := harness.Try(func() {
		for _, k := range restKinds {
			if s.Kind != "" && s.Kind != k.name {
				continue
			}
			harness.Within(k.name, func() { rows = append(rows, s.measureRestOf(ctx, k)) })
			fmt.Fprintln(os.Stderr, "bench:", time.Now().Format(time.TimeOnly), k.name)
		}
	})
	for _, t := range restTables {
		table := harness.Table{Lead: "kind, objects", Columns: t.columns}
		table.Begin(t.name, t.note+" "+s.repetitions()+".")
		for _, r := range rows {
			table.Row(r.figures, fmt.Sprintf("%s, %d", r.name, r.objects))
		}
	}
	harness.Check(failed)
}

func (s settings) measureRestOf(ctx context.Context, k restKind) restRow {
	all := reading{Form: k.form, Kind: k.kind, PerSet: k.perSet, Objects: max(100, s.Pods/k.share)}
	changed := min(all.Objects, 10_000)
	all.Events = min(s.Events, 4*changed)
	row := restRow{k.name, all.Objects, harness.Figures{"objects": float64(all.Objects), "events": float64(all.Events)}}
	measurements := []string{"sync", "relist", "watch"}
	if k.handled {
		measurements = append(measurements, string(byKey), string(byMetadata), string(wholly))
	}
	for i, what := range measurements {
		c := scenario{reading: all, readers: []reader{{k.library, "watchlist"}, {interned, "watchlist"}, {clientGoReflector, "watchlist"}}}
		if c.What, c.Reads = what, what == "sync"; i > 2 {
			c.What, c.Handler = "watch", handling(what)
		}
		if c.What == "watch" {
			c.Objects = changed
		}
		for form, f := range c.measure(ctx, s.Repeat) {
			row.figures = row.figures.With(forms[form]+"."+what+".", f)
		}
	}
	return row
}
