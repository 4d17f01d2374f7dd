package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"github.com/tributary-go/tributary/internal/self"
)

// settings say how much is measured.
type settings struct {
	pods, perSet, widgets int
	kind                  string // of the built-in objects
	events, eventPods     int
	repeat                int
	cores                 int  // of a reader; 0: all
	shuffled              bool // objects come in no order
	only                  string
	curve                 string
	kubeconfig            string // of a real cluster
	fill                  bool   // it with pods
	growth                []int  // sizes of the curve
}

func main() {
	var s settings
	quick := flag.Bool("quick", false, "small sizes and one repetition: shows that everything runs, not how fast")
	flag.IntVar(&s.pods, "pods", 50_000, "pods of a first sync and of a relist")
	flag.IntVar(&s.perSet, "per-set", 50, "pods of each ReplicaSet")
	flag.StringVar(&s.kind, "kind", "", "the kind of the built-in objects in place of pods; the table of kinds has this row only")
	flag.IntVar(&s.widgets, "widgets", 50_000, "custom resources of a first sync")
	flag.IntVar(&s.events, "events", 200_000, "events of a watch")
	flag.IntVar(&s.eventPods, "event-pods", 10_000, "pods that the events are about")
	flag.IntVar(&s.cores, "cores", 0, "the number of cores that a reader has; 0: all")
	flag.BoolVar(&s.shuffled, "shuffled", false, "objects come in no order, and not by key")
	flag.IntVar(&s.repeat, "repeat", 3, "repetitions of each measurement")
	flag.StringVar(&s.only, "only", "", "measure what has this in its name")
	flag.StringVar(&s.curve, "curve", "", "measure growth from 1,000 to 100,000 pods instead, and plot it into this SVG `file`")
	flag.StringVar(&s.kubeconfig, "kubeconfig", "", "measure a first sync of the pods of the cluster in this `file` instead")
	flag.BoolVar(&s.fill, "fill", false, "create -pods pods in that cluster first, which should be a test's")
	flag.Parse()
	s.growth = []int{1_000, 10_000, 50_000, 100_000}
	if *quick {
		s.growth = []int{200, 1_000}
		s.pods, s.widgets, s.events, s.eventPods, s.repeat = 1000, 500, 2000, 200, 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the command itself, or one of the processes that it starts: its arguments begin with their
// role.
func run(ctx context.Context, s settings, args []string) error {
	switch {
	case len(args) == 0 && s.kubeconfig != "":
		return measureCluster(ctx, s)
	case len(args) == 0 && s.curve != "":
		return measureGrowth(ctx, s)
	case len(args) == 0:
		return measureAll(ctx, s)
	case args[0] == "serve":
		return serve(ctx, s)
	case args[0] == "store":
		return measureStores(s)
	case args[0] == "read" && len(args) == 2:
		var r reading
		if err := json.Unmarshal([]byte(args[1]), &r); err != nil {
			return fmt.Errorf("what to read: %w", err)
		}
		return r.measure(ctx)
	case args[0] == "few" && len(args) == 3:
		return measureFew(ctx, s, args[1], args[2])
	case args[0] == "latency" && len(args) == 2:
		var l latency
		if err := json.Unmarshal([]byte(args[1]), &l); err != nil {
			return fmt.Errorf("whose latency: %w", err)
		}
		return l.measure(ctx)
	case args[0] == "inform" && len(args) == 2:
		var m informing
		if err := json.Unmarshal([]byte(args[1]), &m); err != nil {
			return fmt.Errorf("what to inform of: %w", err)
		}
		return m.measure(ctx)
	}
	return fmt.Errorf("unknown role %q: start it without arguments", args[0])
}

// start prepares a process of this program in another role.
func (s settings) start(ctx context.Context, role ...string) (*exec.Cmd, error) {
	args := append([]string{
		fmt.Sprint("-pods=", s.pods), fmt.Sprint("-per-set=", s.perSet), fmt.Sprint("-widgets=", s.widgets), fmt.Sprint("-event-pods=", s.eventPods), fmt.Sprint("-events=", s.events),
		"-only=" + s.only, "-kind=" + s.kind, fmt.Sprint("-shuffled=", s.shuffled),
	}, role...)
	return self.Command(ctx, args...)
}
