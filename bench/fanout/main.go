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
	"context"
	"flag"
	"fmt"
	"slices"

	"github.com/tributary-go/tributary/bench/harness"
)

// load is one row: how many watch what, and how hard the writer pushes.
type load struct {
	Library  string
	Watchers int
	All      bool // everybody watches everything; else each watches the pods of one node
	Initial  bool // no writes: all begin at once, with the whole state
	Dead     int  // further watchers of everything that never read
	InFlight int
	Rate     int  // writes per second, however many are in flight; zero: as many as are taken
	Beside   bool // a further watcher of everything never reads and comes again
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
	if l.Beside {
		name += ", one more never reads and comes again"
	}
	return name
}

// libraries are measured by turns: the cacher and ours.
var libraries = []string{"cacher", "tributary"}

// untold is ours without the length of each object on the wire, which a reflector tells, and a
// collection that is written here does not. Rows by node have it, too.
const untold = "tributary, untold"

// names are those of the libraries in tables.
var names = map[string]string{"cacher": "API server", "tributary": "ours", untold: "ours, lengths not told"}

var (
	events      = flag.Int("events", 400_000, "events of a row by node")
	curve       = flag.String("curve", "", "measure the rows by node with 8 in flight, and plot them into this file")
	idleOnly    = flag.Bool("idle", false, "measure what idle watchers over HTTP cost the server")
	listsOnly   = flag.Bool("lists", false, "measure what lists at once over HTTP cost our server")
	deliverOnly = flag.Bool("deliver", false, "measure what a delivery over HTTP costs the server")
)

func main() {
	harness.Main(3, harness.Roles{"measure": harness.Measures(measure), "serve": harness.Acts(serve)}, func(ctx context.Context, s harness.Settings) {
		pods, waiting, readers, clients, writes := 10_000, 10_000, 1_000, 100, 60
		if s.Quick {
			counts, *events = []int{1, 50}, 2_000
			pods, waiting, readers, clients, writes = 200, 50, 50, 5, 20
		}
		switch {
		case *listsOnly:
			measureWeb(ctx, s, listRows(clients, pods), listColumns...)
		case *idleOnly:
			measureWeb(ctx, s, web{Clients: waiting, served: served{Pods: pods}}.rows(), idleColumns...)
		case *deliverOnly:
			measureWeb(ctx, s, web{Clients: readers, Writes: writes, served: served{Pods: pods}}.rows(), deliveryColumns...)
		case *curve != "":
			measureCurve(ctx, s, pods, *curve)
		default:
			table.Begin("")
			for _, l := range rows(pods, *events) {
				if s.Wants(l.String()) {
					l.measureAll(ctx, s)
				}
			}
		}
	})
}

// counts are the numbers of watchers by node.
var counts = []int{1, 1_000, 5_000, 20_000, 100_000}

// rows are what is measured.
func rows(pods, events int) (loads []load) {
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

// slowRows are a healthy watcher, or ten, beside watchers that are slow, as in Kubernetes'
// BenchmarkSlowWatcherTax.
func slowRows(pods, events int) (loads []load) {
	seconds := min(10, float64(events)/40_000)
	for _, rate := range []int{100, 1000} {
		l := load{Watchers: 1, All: true, Rate: rate, Pods: pods, Events: int(seconds * float64(rate))}
		loads = append(loads, l)
		l.Beside = true
		loads = append(loads, l)
	}
	for _, dead := range []int{0, min(1000, pods)} {
		loads = append(loads, load{
			Watchers: 10, All: true, Dead: dead, Rate: 1000, Pods: pods, Events: int(seconds * 1000),
		})
	}
	return loads
}

// table has the figures of one load and cache. Bytes are heap and stack of a watcher that waits for
// its first event, and with the stack that it has after the events of the row; of few watchers they
// tell nothing. Relists are those of a slow watcher, whose watch was ended or its version refused.
var table = harness.Table{Lead: "load | cache", Columns: []harness.Column{
	harness.Col("events/s", "%.0f", "events/wall"), harness.Col("deliveries/s", "%.0f", "deliveries/wall").Alone(),
	harness.Col("user CPU us/delivery", "%.3g", "user*1e6/deliveries"), harness.Col("p50 us", "%.0f", "p50"), harness.Col("p99 us", "%.0f", "p99"),
	harness.Col("bytes/watcher", "%.0f", "waiting"), harness.Col("after events", "%.0f", "told"), harness.Col("peak MB", "%.0f", "peak/1e6"),
	harness.Col("relists", "%.0f", "relists").Alone(), harness.Col("watchers that were cut", "%.0f", "cut").Alone(),
}}

// measureAll measures a load with all libraries by turns, prints the rows, and returns the medians.
func (l load) measureAll(ctx context.Context, s harness.Settings) (medians []harness.Figures) {
	libraries := libraries
	if !l.All {
		libraries = append(slices.Clone(libraries), untold)
	}
	harness.Within(l, func() {
		medians = harness.ByTurns(s.Repeat, libraries, func(library string) harness.Figures {
			l.Library = library
			return harness.Measure(ctx, "measure", l)
		})
	})
	for i, library := range libraries {
		table.Row(medians[i], l, names[library])
		if i > 0 {
			table.Ratio(medians[i], medians[0], "", "**ours / theirs**")
		}
	}
	return medians
}
