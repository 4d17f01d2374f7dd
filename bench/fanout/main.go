// The command fanout measures the watch cache beside the API server's own, the cacher of
// k8s.io/apiserver, and prints a table.
//
//	go run -C bench ./fanout            # all rows, some forty minutes on two cores
//	go run -C bench ./fanout -quick     # small, for CI: every row once
//	go run -C bench ./fanout -curve f   # the rows by node, plotted over the number of watchers
//	go run -C bench ./fanout -idle      # the server's memory for watchers over HTTP that wait
//	go run -C bench ./fanout -lists     # and for lists at once
//	go run -C bench ./fanout -deliver   # the server's CPU for a delivery over HTTP
//
// Both caches live in the process that measures, hold the same pods and get the same writes. A
// write begins when fewer than a number of writes are still in flight, which have not reached all
// watchers that select them. Nothing is encoded: the clock stops when the watcher has the
// event. Each figure comes from a fresh process, by turns; the table has medians. The goals are in
// docs/makers/benchmarks.md.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/tributary-go/tributary/internal/self"
)

// load is one row: how many watch what, and how hard the writer pushes.
type load struct {
	Library  string
	Watchers int
	All      bool // everybody watches everything; else each watches the pods of one node
	Initial  bool // no writes: all begin at once, with the whole state
	Dead     int  // further watchers of everything that never read
	InFlight int
	Rate     int    // writes per second, however many are in flight; zero: as many as are taken
	Beside   string // a further watcher of everything: see companions
	Pods     int
	Events   int
}

// warm is how many writes come before the first that is measured. By node they fill the window of
// the API server's cacher, which grows to 102,400 events. The events measured then are worth
// several collections of garbage on both sides: fewer had none or one, by chance.
func (l load) warm() int {
	if l.All {
		return min(l.Events/10, 1000)
	}
	return 3 * l.Events / 10
}

// companions are the slow watchers of Kubernetes' BenchmarkSlowWatcherTax.
var companions = map[string]companion{
	"reads and comes again every 500 ms": {reads: true, again: true},
	"never reads":                        {},
	"never reads and comes again":        {again: true},
}

type companion struct{ reads, again bool }

func (l load) String() string {
	selects := "by node"
	if l.All {
		selects = "everything"
	}
	name := fmt.Sprintf("%s, %d watchers, ", selects, l.Watchers)
	switch {
	case l.Initial:
		name += fmt.Sprintf("the first state of %d pods at once", l.Pods)
	case l.Rate > 0:
		name += fmt.Sprintf("%d writes a second", l.Rate)
	default:
		name += fmt.Sprintf("%d in flight", l.InFlight)
	}
	if l.Dead > 0 {
		name += fmt.Sprintf(", %d more never read", l.Dead)
	}
	if l.Beside != "" {
		name += ", one more " + l.Beside
	}
	return name
}

// libraries are measured by turns: the cacher, and ours with a goroutine for each watcher.
var libraries = []string{"cacher", "tributary"}

// names are those of the libraries in tables.
var names = map[string]string{
	"cacher": "API server", "tributary": "ours", "polled": "ours, polled", "floor": "floor: a channel each",
	"polled floor": "floor: a queue",
}

// libraries are those that a row has. Without goroutines of their own, watchers of one node or of
// everything are the same load as with them.
func (l load) libraries() []string {
	switch {
	case l.Rate > 0 || l.Initial:
		return libraries
	case l.All:
		return append(slices.Clone(libraries), "polled")
	}
	return append(slices.Clone(libraries), "polled", "floor", "polled floor")
}

func main() {
	quick := flag.Bool("quick", false, "small sizes and one repetition: shows that everything runs, not how fast")
	repeat := flag.Int("repeat", 3, "repetitions of each measurement")
	only := flag.String("only", "", "measure the rows that have this in their name")
	events := flag.Int("events", 400_000, "events of a row by node")
	curve := flag.String("curve", "", "measure the rows by node with 8 in flight, and plot them into this file")
	idleOnly := flag.Bool("idle", false, "measure what idle watchers over HTTP cost the server")
	listsOnly := flag.Bool("lists", false, "measure what lists at once over HTTP cost our server")
	deliverOnly := flag.Bool("deliver", false, "measure what a delivery over HTTP costs the server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := error(nil)
	switch {
	case flag.NArg() == 2 && flag.Arg(0) == "measure":
		var l load
		if err = json.Unmarshal([]byte(flag.Arg(1)), &l); err == nil {
			err = measure(ctx, l)
		}
	case flag.NArg() == 2 && flag.Arg(0) == "serve":
		var s served
		if err = json.Unmarshal([]byte(flag.Arg(1)), &s); err == nil {
			err = serve(ctx, s)
		}
	case *quick && *listsOnly:
		err = measureLists(ctx, listRows(5, 200), *only)
	case *listsOnly:
		err = measureLists(ctx, listRows(100, 10_000), *only)
	case *quick && *idleOnly:
		err = measureIdle(ctx, idleRows(50, 200), 1)
	case *idleOnly:
		err = measureIdle(ctx, idleRows(10_000, 10_000), *repeat)
	case *quick && *deliverOnly:
		err = measureDeliveries(ctx, deliverRows(50, 200, 20), 1)
	case *deliverOnly:
		err = measureDeliveries(ctx, deliverRows(1_000, 10_000, 60), *repeat)
	case *curve != "" && *quick:
		err = measureCurve(ctx, []int{1, 50}, 200, 2_000, 1, *curve)
	case *curve != "":
		err = measureCurve(ctx, counts, 10_000, *events, *repeat, *curve)
	case *quick:
		err = measureAll(ctx, rows([]int{1, 50}, 200, 2_000), 1, *only)
	default:
		err = measureAll(ctx, rows(counts, 10_000, *events), *repeat, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fanout:", err)
		os.Exit(1)
	}
}

// counts are the numbers of watchers by node.
var counts = []int{1, 1_000, 5_000, 20_000, 100_000}

// rows are what is measured, with the watchers by node given.
func rows(counts []int, pods, events int) (loads []load) {
	for _, inFlight := range []int{8, 512} {
		for _, watchers := range counts {
			loads = append(loads, load{Watchers: watchers, InFlight: inFlight, Pods: pods, Events: events})
		}
	}
	for _, inFlight := range []int{8, 512} {
		for _, watchers := range counts {
			if watchers == 1_000 || watchers == 5_000 || watchers == 50 {
				deliveries := 25 * events / 2
				loads = append(loads, load{Watchers: watchers, All: true, InFlight: inFlight, Pods: pods, Events: deliveries / watchers})
			}
		}
	}
	for _, many := range []int{pods, 5 * pods} {
		loads = append(loads, load{Watchers: 100, All: true, Initial: true, Pods: many})
	}
	return append(loads, slowRows(pods, events)...)
}

// slowRows are a healthy watcher, or ten, beside watchers that are slow.
func slowRows(pods, events int) (loads []load) {
	seconds := min(10, float64(events)/40_000)
	for _, rate := range []int{100, 1000} {
		l := load{Watchers: 1, All: true, Rate: rate, Pods: pods, Events: int(seconds * float64(rate))}
		loads = append(loads, l)
		for _, beside := range slices.Sorted(maps.Keys(companions)) {
			l.Beside = beside
			loads = append(loads, l)
		}
	}
	for _, dead := range []int{0, min(1000, pods)} {
		loads = append(loads, load{
			Watchers: 10, All: true, Dead: dead, Rate: 1000, Pods: pods, Events: int(seconds * 1000),
		})
	}
	return loads
}

// figures are the outcome of one measurement.
type figures struct {
	EventsPerSecond float64
	CPU             float64 // user time per delivery, in microseconds
	P50, P99        float64 // from the call of the write to the last delivery, in microseconds
	BytesPerWatcher float64 // heap and stack of one that waits for its first; zero: too few to tell
	BytesTold       float64 // with the stack that it has after the events of the row
	PeakMB          float64 // resident
	Cut             float64 // watchers that were ended
	Relists         float64 // of a slow watcher, whose watch was ended or its version refused
}

func measureAll(ctx context.Context, loads []load, repeat int, only string) error {
	printHead()
	for _, l := range loads {
		if !strings.Contains(l.String(), only) {
			continue
		}
		if _, err := l.measureAll(ctx, repeat); err != nil {
			return err
		}
	}
	return nil
}

func printHead() {
	fmt.Println("| load | cache | events/s | deliveries/s | user CPU us/delivery | p50 us | p99 us | bytes/watcher | after events | peak MB | relists |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|")
}

// measureAll measures a load with all libraries by turns, prints the rows, and returns the medians.
func (l load) measureAll(ctx context.Context, repeat int) (map[string]figures, error) {
	runs, medians := map[string][]figures{}, map[string]figures{}
	for range repeat {
		for _, library := range l.libraries() {
			l.Library = library
			f, err := l.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", library, l, err)
			}
			runs[library] = append(runs[library], f)
		}
	}
	for _, library := range l.libraries() {
		medians[library] = median(runs[library])
		fmt.Println(l.row(names[library], medians[library]))
		if library == "tributary" || library == "polled" {
			fmt.Println(ratios(medians[library], medians["cacher"]))
		}
	}
	return medians, nil
}

func (l load) row(name string, f figures) string {
	if f.Cut > 0 {
		return fmt.Sprintf("| %s | %s | %.0f watchers were cut | | | | | | | %.0f | |", l, name, f.Cut, f.PeakMB)
	}
	fanOut := 1
	if l.All {
		fanOut = l.Watchers
	}
	perWatcher := " | "
	if f.BytesPerWatcher > 0 {
		perWatcher = fmt.Sprintf("%.0f | %.0f", f.BytesPerWatcher, f.BytesTold)
	}
	relists := ""
	if l.Beside != "" {
		relists = fmt.Sprintf("%.0f", f.Relists)
	}
	return fmt.Sprintf("| %s | %s | %.0f | %.0f | %.3g | %.0f | %.0f | %s | %.0f | %s |", l, name, f.EventsPerSecond,
		f.EventsPerSecond*float64(fanOut), f.CPU, f.P50, f.P99, perWatcher, f.PeakMB, relists)
}

func ratios(ours, theirs figures) string {
	cells := "| | **ours / theirs** |"
	for _, of := range []func(figures) float64{
		func(f figures) float64 { return f.EventsPerSecond }, nil, func(f figures) float64 { return f.CPU },
		func(f figures) float64 { return f.P50 }, func(f figures) float64 { return f.P99 },
		func(f figures) float64 { return f.BytesPerWatcher }, func(f figures) float64 { return f.BytesTold },
		func(f figures) float64 { return f.PeakMB },
	} {
		if of == nil || of(theirs) == 0 || of(ours) == 0 {
			cells += " |"
			continue
		}
		cells += fmt.Sprintf(" **%s** |", short(of(ours)/of(theirs)))
	}
	return cells + " |"
}

// short has two digits that mean something.
func short(ratio float64) string {
	switch {
	case ratio >= 10:
		return fmt.Sprintf("%.0f", ratio)
	case ratio >= 0.01 || ratio == 0:
		return fmt.Sprintf("%.2f", ratio)
	}
	return fmt.Sprintf("%.2g", ratio)
}

// run measures a load in a process of its own.
func (l load) run(ctx context.Context) (f figures, err error) {
	asked, err := json.Marshal(l)
	if err != nil {
		return f, err
	}
	cmd, err := self.Command(ctx, "measure", string(asked))
	if err != nil {
		return f, err
	}
	out, err := cmd.Output()
	if err != nil {
		return f, err
	}
	return f, json.Unmarshal(out, &f)
}

// median takes each figure's own; of watchers that were cut, and of relists, the most.
func median(runs []figures) (f figures) {
	of := func(figure func(*figures) *float64) {
		slices.SortFunc(runs, func(a, b figures) int { return cmp.Compare(*figure(&a), *figure(&b)) })
		*figure(&f) = *figure(&runs[len(runs)/2])
	}
	of(func(f *figures) *float64 { return &f.EventsPerSecond })
	of(func(f *figures) *float64 { return &f.CPU })
	of(func(f *figures) *float64 { return &f.P50 })
	of(func(f *figures) *float64 { return &f.P99 })
	of(func(f *figures) *float64 { return &f.BytesPerWatcher })
	of(func(f *figures) *float64 { return &f.BytesTold })
	of(func(f *figures) *float64 { return &f.PeakMB })
	for _, run := range runs {
		f.Cut, f.Relists = max(f.Cut, run.Cut), max(f.Relists, run.Relists)
	}
	return f
}
