package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-go/tributary/internal/self"
)

// settings say how much is measured.
type settings struct {
	quick    bool
	repeat   int
	only     string
	row      string // of a table; empty: all
	profile  string // a file for the heap of the relay; empty: none
	agents   []int
	idle     []int
	rates    []int
	pods     []int // of first readers
	memory   int   // pods
	garbage  []int // further rows of memory, by GOGC
	limit    int   // and one by GOMEMLIMIT, in MiB; 0: none
	seconds  int   // of a phase with writes
	watchers int
	slowRate int
}

func main() {
	s := settings{agents: []int{1, 10, 100}, idle: []int{1_000, 10_000}, rates: []int{10, 100, 1_000}, pods: []int{0, 1_000, 50_000}}
	flag.BoolVar(&s.quick, "quick", false, "small sizes and one repetition: shows that everything runs, not how much it costs")
	flag.IntVar(&s.repeat, "repeat", 3, "repetitions of each measurement; the tables have medians")
	flag.StringVar(&s.only, "only", "", "measure the table with this name")
	flag.StringVar(&s.row, "row", "", "measure this row of memory alone, idle watches of this protocol, or this way of the bill")
	flag.StringVar(&s.profile, "profile", "", "write the relay's heap of the last row of idle watches or of memory into this `file`")
	flag.IntVar(&s.memory, "pods", 50_000, "pods of the table of memory")
	flag.IntVar(&s.seconds, "seconds", 10, "how long is written in a phase of latency")
	flag.IntVar(&s.limit, "limit", 0, "measure memory also with this GOMEMLIMIT, in `MiB`")
	for name, list := range map[string]*[]int{"agents": &s.agents, "idle": &s.idle, "rates": &s.rates, "sizes": &s.pods, "gogc": &s.garbage} {
		flag.Func(name, "`numbers` in place of the usual ones, such as 1,10", func(text string) (err error) {
			*list, err = numbers(text)
			return err
		})
	}
	role := flag.String("role", "", "what a process of its own is: the command starts them itself")
	flag.Parse()
	s.watchers, s.slowRate = 100, 500
	if s.quick {
		s.repeat, s.agents, s.idle, s.rates, s.pods = 1, []int{2}, []int{50}, []int{20}, []int{0, 100}
		s.memory, s.seconds, s.watchers, s.slowRate = 300, 1, 5, 50
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s, *role, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings, role string, args []string) error {
	switch role {
	case "upstream":
		return as(ctx, args, serveUpstream)
	case "relay":
		return as(ctx, args, serveRelay)
	case "agents":
		return as(ctx, args, beAgents)
	}
	fmt.Printf("%s, %s/%s, %d CPUs, %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().Format(time.DateOnly))
	for _, part := range []struct {
		name    string
		measure func(context.Context, settings) error
	}{
		{"bill", measureBill}, {"idle", measureIdle}, {"memory", measureMemory},
		{"latency", measureLatency}, {"slow", measureSlow}, {"first", measureFirst},
	} {
		if s.only != "" && s.only != part.name {
			continue
		}
		if err := part.measure(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// as runs a role with its arguments in JSON.
func as[S any](ctx context.Context, args []string, role func(context.Context, S) error) error {
	var s S
	if len(args) != 1 {
		return fmt.Errorf("%d arguments: a role has one", len(args))
	}
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		return err
	}
	return role(ctx, s)
}

// start starts a process in a role, and returns the words of its first line.
func start(ctx context.Context, role string, how any) (p *self.Process, words []string, err error) {
	text, err := json.Marshal(how)
	if err != nil {
		return nil, nil, err
	}
	if p, err = self.Start(ctx, "-role", role, string(text)); err != nil {
		return nil, nil, err
	}
	line, err := p.Line()
	if err != nil {
		p.Stop()
		return nil, nil, fmt.Errorf("%s: %w", role, err)
	}
	return p, strings.Fields(line), nil
}

// numbers are separated by commas.
func numbers(text string) (list []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is no number", part)
		}
		list = append(list, n)
	}
	return list, nil
}

// quantile sorts the values; q is 0.5 for the median.
func quantile[T cmp.Ordered](values []T, q float64) (value T) {
	if len(values) == 0 {
		return value
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(q*float64(len(values))))]
}

// of is the median of a figure.
func of[R any, T cmp.Ordered](all []R, figure func(R) T) T {
	var values []T
	for _, r := range all {
		values = append(values, figure(r))
	}
	return quantile(values, 0.5)
}
