// The command road counts the code that one event runs: the functions, files, statements and lock
// acquisitions between the bytes of a watch and the program's handler.
//
//	go run -C bench ./road                 # a table of all roads, and each road by package
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
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

const (
	program = "github.com/tributary-go/tributary/bench/road/walk"
	counted = "github.com/tributary-go/tributary/...,k8s.io/client-go/...,k8s.io/apimachinery/...,k8s.io/streaming/..."
)

func main() {
	verbose := flag.Bool("v", false, "list the functions, and the line of each lock")
	most := flag.String("most", "", "the most of a road, such as functions=130,files=30,locks=12; more is a failure")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, flag.Args(), *most, *verbose)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// road is a way that an event takes.
type road struct{ name, what string }

// run counts the roads of these names, or all.
func run(ctx context.Context, names []string, most string, verbose bool) error {
	goals, err := parseGoals(most)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "road")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.Setenv("GOCOVERDIR", work); err != nil { // a walker writes there at its end
		return err
	}
	walker := filepath.Join(work, "walker")
	if _, err := command(ctx, "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+counted, "-o", walker, program); err != nil {
		return err
	}
	list, err := command(ctx, walker)
	if err != nil {
		return err
	}
	var chosen []road
	for line := range strings.Lines(list) {
		name, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		if len(names) == 0 || slices.Contains(names, name) {
			chosen = append(chosen, road{name, what})
		}
	}
	if len(chosen) < len(names) {
		return fmt.Errorf("not all of %q are roads, which are:\n%s", names, list)
	}
	counts := make([]count, len(chosen))
	var walking errgroup.Group
	for i, r := range chosen {
		walking.Go(func() (err error) {
			counts[i], err = r.count(ctx, walker, filepath.Join(work, r.name))
			return err
		})
	}
	if err := walking.Wait(); err != nil {
		return err
	}
	print(chosen, counts, verbose)
	var missed []error
	for i, r := range chosen {
		missed = append(missed, goals.missed(r.name, counts[i]))
	}
	return errors.Join(missed...)
}

// count has a process of its own take the road, and reads the counters of its events.
func (r road) count(ctx context.Context, walker, folder string) (least count, err error) {
	if _, err := command(ctx, walker, r.name, folder); err != nil {
		return nil, err
	}
	events, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return nil, err
	}
	for _, event := range events {
		profile := filepath.Join(event, "profile")
		if _, err := command(ctx, "go", "tool", "covdata", "textfmt", "-i="+event, "-o="+profile); err != nil {
			return nil, err
		}
		c, err := readCount(ctx, profile)
		if err != nil {
			return nil, err
		}
		if least == nil || c.less(least) {
			least = c
		}
	}
	return least, nil
}

// command returns the output of a program, which is also in its error.
func command(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// print writes a table of the roads, and one of each road's packages.
func print(chosen []road, counts []count, verbose bool) {
	fmt.Println("| road | functions | files | statements | locks | functions of apimachinery |\n|---|---|---|---|---|---|")
	for i, r := range chosen {
		below := counts[i].total(isApimachinery).measures()["functions"]
		fmt.Printf("| %s: %s | %s | %d |\n", r.name, r.what, counts[i].total(isOwn), below)
	}
	for i, r := range chosen {
		fmt.Printf("\n### %s\n\n| package | functions | files | statements | locks |\n|---|---|---|---|---|\n", r.name)
		for _, p := range counts[i].packages() {
			fmt.Printf("| %s | %s |\n", p, counts[i][p])
		}
		if verbose {
			counts[i].list()
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
			return nil, fmt.Errorf("-most: %q is no goal such as functions=130, files=30, statements=2000 or locks=12", goal)
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
		if total[name] > g[name] {
			missed = append(missed, fmt.Errorf("%s: %d %s, and the goal is at most %d", road, total[name], name, g[name]))
		}
	}
	return errors.Join(missed...)
}
