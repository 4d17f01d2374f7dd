// The command road counts the code that one event runs: the functions, files and lock acquisitions
// between the bytes of a watch and the program's handler.
//
//	go run -C bench ./road                 # a table of all roads
//	go run -C bench ./road -v handler      # one road, with its functions, and each lock's line
//	go run -C bench ./road -most functions=130,files=30,locks=12 handler
//
// It builds the command walk with coverage, which follows a collection of pods in protobuf over
// HTTP, and sends MODIFIED events one at a time. It reads the coverage counters of each event: of
// Tributary, client-go and apimachinery, but not of the generated code of k8s.io/api, nor of the
// standard library. Totals and goals leave out apimachinery; its functions have a separate column,
// since client-go decodes there.
//
// Each road reports its event with the fewest functions, and of those the event with the fewest
// locks: another event may have met a heartbeat, or goroutines in a rarer order.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-go/tributary/bench/harness"
)

const (
	benches = "github.com/tributary-go/tributary/bench/" // their code is not counted
	program = benches + "road/walk"
	counted = "github.com/tributary-go/tributary/...,k8s.io/client-go/...,k8s.io/apimachinery/...,k8s.io/streaming/..."
)

func main() {
	verbose := flag.Bool("v", false, "list the functions, and the line of each lock")
	most := flag.String("most", "", "the most of a road, such as functions=130,files=30,locks=12; more is a failure")
	flag.Parse()
	if err := harness.Try(func() { run(context.Background(), flag.Args(), *most, *verbose) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// road is a way that an event takes.
type road struct {
	name, what string
	count      count
}

// run counts the roads of these names, or all.
func run(ctx context.Context, names []string, most string, verbose bool) {
	goals := harness.Must(parseGoals(most))
	work := harness.Must(os.MkdirTemp("", "road"))
	defer os.RemoveAll(work)
	harness.Check(os.Setenv("GOCOVERDIR", work)) // a walker writes there at its end
	walker := filepath.Join(work, "walker")
	command(ctx, "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+counted, "-o", walker, program)
	list := command(ctx, walker)
	var chosen []road
	for line := range strings.Lines(list) {
		name, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		if len(names) == 0 || slices.Contains(names, name) {
			chosen = append(chosen, road{name: name, what: what})
		}
	}
	if len(chosen) < len(names) {
		harness.Fail("not all of %q are roads, which are:\n%s", names, list)
	}
	sources := sourcesOf(ctx)
	harness.AtOnce(len(chosen), len(chosen), func(i int) {
		chosen[i].count = leastOf(ctx, sources, walker, chosen[i].name, filepath.Join(work, chosen[i].name))
	})
	print(chosen, verbose)
	var missed []error
	for _, r := range chosen {
		missed = append(missed, goals.missed(r.name, r.count))
	}
	harness.Check(errors.Join(missed...))
}

// leastOf has a process of its own take a road, and reads the counters of its events.
func leastOf(ctx context.Context, sources *sources, walker, name, folder string) (least count) {
	command(ctx, walker, name, folder)
	for _, event := range harness.Must(filepath.Glob(filepath.Join(folder, "*"))) {
		profile := filepath.Join(event, "profile")
		command(ctx, "go", "tool", "covdata", "textfmt", "-i="+event, "-o="+profile)
		if c := sources.count(profile); least == nil || c.less(least) {
			least = c
		}
	}
	return least
}

// command returns the output of a program, which is also in its error.
func command(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		harness.Fail("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// print writes a table of the roads, and what ran on each if it is verbose.
func print(chosen []road, verbose bool) {
	table := harness.Table{Lead: "road", Columns: []harness.Column{
		harness.Col("functions", "%.0f", "functions"), harness.Col("files", "%.0f", "files"), harness.Col("locks", "%.0f", "locks"),
		harness.Col("functions of apimachinery", "%.0f", "below"),
	}}
	table.Begin("")
	for _, r := range chosen {
		f := r.count.total(isOwn).measures()
		f["below"] = r.count.total(isApimachinery).measures()["functions"]
		table.Row(f, r.name+": "+r.what)
	}
	for _, r := range chosen {
		if verbose {
			fmt.Printf("\n### %s\n", r.name)
			r.count.list()
		}
	}
}

// goals are the most that a road may have, by the name of the measure.
type goals map[string]int

func parseGoals(most string) (goals, error) {
	g := goals{}
	for goal := range strings.SplitSeq(most, ",") {
		name, value, _ := strings.Cut(goal, "=")
		n, err := strconv.Atoi(value)
		if _, known := (part{}).measures()[name]; most != "" && (err != nil || !known) {
			return nil, fmt.Errorf("-most: %q is no goal such as functions=130, files=30 or locks=12", goal)
		}
		if most != "" {
			g[name] = n
		}
	}
	return g, nil
}

// missed is the error of a road that has more than the goals.
func (g goals) missed(road string, c count) error {
	var missed []error
	total := c.total(isOwn).measures()
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if total[name] > float64(g[name]) {
			missed = append(missed, fmt.Errorf("%s: %.0f %s, and the goal is at most %d", road, total[name], name, g[name]))
		}
	}
	return errors.Join(missed...)
}
