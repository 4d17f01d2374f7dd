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
	"strings"
	"time"

	"github.com/tributary-go/tributary/internal/self"
)

// settings say how much is measured. They are the arguments of the processes that are started, too.
type settings struct {
	Secrets  int
	Size     int // bytes of each
	Referred int
	Names    int
	Repeat   int
	Churn    int // changes of the other Secrets
	Nodes    int
	Only     string
}

func main() {
	var s settings
	quick := flag.Bool("quick", false, "small sizes and one repetition: shows that everything runs, not how much it costs")
	flag.IntVar(&s.Secrets, "secrets", 33493, "Secrets on the server")
	flag.IntVar(&s.Size, "size", 10_000, "bytes of a Secret")
	flag.IntVar(&s.Referred, "referred", 50, "Secrets that are referred to")
	flag.IntVar(&s.Nodes, "nodes", 50_000, "Nodes on the server, of which one is read")
	flag.IntVar(&s.Names, "names", 10_000, "names of the first table")
	flag.IntVar(&s.Repeat, "repeat", 3, "repetitions of each row")
	flag.StringVar(&s.Only, "only", "", "measure what has this in its name: names, memory, churn or nodes")
	role := flag.String("role", "", "what a process of its own is: the command starts them itself")
	flag.Parse()
	if *quick {
		s = settings{Secrets: 500, Size: 10_000, Referred: 5, Names: 200, Nodes: 500, Repeat: 1, Only: s.Only}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s, *role, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "refs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings, role string, args []string) error {
	if role == "" {
		return measure(ctx, s)
	}
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		return err
	}
	if role == "serve" {
		return serve(ctx, s)
	}
	return read(ctx, s, role, args[1])
}

func measure(ctx context.Context, s settings) error {
	fmt.Printf("%s, %s/%s, %d CPUs, %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().Format(time.DateOnly))
	for _, part := range []struct {
		name    string
		measure func(context.Context, settings) error
	}{{"names", measureNames}, {"memory", measureMemory}, {"churn", measureChurn}, {"nodes", measureNodes}} {
		if strings.Contains(part.name, s.Only) {
			if err := part.measure(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	return nil
}

// measureNames is the cost of names without their objects.
func measureNames(ctx context.Context, s settings) error {
	without := s
	without.Secrets, without.Nodes = 0, 0
	fmt.Printf("\n### names without objects (medians of %d)\n\n", s.Repeat)
	fmt.Println("| | names | all started after s | most that waited for their state | connections | KB a name: heap | stacks | RSS | goroutines a name | CPU ms a name |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	base, err := without.median(ctx, bare)
	if err != nil {
		return err
	}
	for _, names := range []int{s.Names / 10, s.Names} {
		for _, library := range []string{followed, watched, kubelet} {
			if library == kubelet && names > 1000 {
				continue // all at once, they dial more connections than the machine has ports
			}
			row := without
			row.Names = names
			r, err := row.median(ctx, library)
			if err != nil {
				return err
			}
			n := float64(names)
			fmt.Printf("| %s | %d | %.1f | %d | %d | %.1f | %.1f | %.1f | %.2f | %.2f |\n", library, names, r.Seconds, r.Waiting, r.Connections,
				(r.Heap-base.Heap)/n/1e3, (r.Stacks-base.Stacks)/n/1e3, (r.RSS-base.RSS)/n/1e3, float64(r.Goroutines-base.Goroutines)/n, (r.CPU-base.CPU)/n*1e3)
		}
	}
	return nil
}

// measureMemory is a program that refers to a few of many Secrets.
func measureMemory(ctx context.Context, s settings) error {
	s.Nodes = 0
	fmt.Printf("\n### %d of %d Secrets of %d bytes (medians of %d)\n\n", s.Referred, s.Secrets, s.Size, s.Repeat)
	return s.measureReads(ctx, referred, clientGo)
}

// measureNodes is a program that looks up one Node by its name.
func measureNodes(ctx context.Context, s settings) error {
	s.Secrets = 0
	fmt.Printf("\n### 1 of %d Nodes (medians of %d)\n\n", s.Nodes, s.Repeat)
	return s.measureReads(ctx, oneNode, allNodes)
}

// measureReads measures libraries beside the bare program, once each has read what it wants.
func (s settings) measureReads(ctx context.Context, libraries ...string) error {
	fmt.Println("| | live heap MB | RSS MB | RSS over the bare program | peak RSS MB | all read after ms | read from the network MB |")
	fmt.Println("|---|---|---|---|---|---|---|")
	var base float64
	for _, library := range append([]string{bare}, libraries...) {
		r, err := s.median(ctx, library)
		if err != nil {
			return err
		}
		if library == bare {
			base = r.RSS
		}
		fmt.Printf("| %s | %.1f | %.1f | %.1f | %.1f | %.0f | %.1f |\n", library, r.Heap/1e6, r.RSS/1e6, (r.RSS-base)/1e6, r.Peak/1e6, r.Seconds*1e3, float64(r.Read)/1e6)
	}
	return nil
}

// measureChurn measures the cost of changes of other objects.
func measureChurn(ctx context.Context, s settings) error {
	s.Nodes = 0
	s.Secrets, s.Churn = max(s.Secrets/30, s.Referred+100), max(s.Secrets/3, 1000)
	fmt.Printf("\n### %d changes of other Secrets of %d bytes, of %d (medians of %d)\n\n", s.Churn, s.Size, s.Secrets, s.Repeat)
	fmt.Println("| | CPU µs a change | bytes a change |")
	fmt.Println("|---|---|---|")
	for _, library := range []string{bare, referred, shared, clientGo} {
		r, err := s.median(ctx, library)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %.1f | %.0f |\n", library, r.ChurnCPU/float64(s.Churn)*1e6, float64(r.ChurnRead)/float64(s.Churn))
	}
	return nil
}

// median measures a library in processes of their own, on a server of its own.
func (s settings) median(ctx context.Context, library string) (result, error) {
	server, err := s.start(ctx, "serve")
	if err != nil {
		return result{}, err
	}
	defer server.Stop()
	address, err := server.Line()
	if err != nil {
		return result{}, err
	}
	var all []result
	for range s.Repeat {
		r, err := s.once(ctx, library, address)
		if err != nil {
			return result{}, fmt.Errorf("%s: %w", library, err)
		}
		all = append(all, r)
	}
	return result{
		Heap: of(all, func(r result) float64 { return r.Heap }), Stacks: of(all, func(r result) float64 { return r.Stacks }),
		RSS: of(all, func(r result) float64 { return r.RSS }), Peak: of(all, func(r result) float64 { return r.Peak }),
		Seconds: of(all, func(r result) float64 { return r.Seconds }), CPU: of(all, func(r result) float64 { return r.CPU }),
		ChurnCPU: of(all, func(r result) float64 { return r.ChurnCPU }), ChurnRead: of(all, func(r result) int64 { return r.ChurnRead }),
		Goroutines: of(all, func(r result) int { return r.Goroutines }), Read: of(all, func(r result) int64 { return r.Read }),
		load: load{of(all, func(r result) int64 { return r.Connections }), of(all, func(r result) int64 { return r.Waiting })},
	}, nil
}

// of is the median of a figure.
func of[T cmp.Ordered](all []result, figure func(result) T) T {
	var values []T
	for _, r := range all {
		values = append(values, figure(r))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func (s settings) once(ctx context.Context, library, address string) (r result, err error) {
	p, err := s.start(ctx, library, address)
	if err != nil {
		return r, err
	}
	defer p.Stop()
	line, err := p.Line()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal([]byte(line), &r)
}

// start starts a process in a role, with the same settings.
func (s settings) start(ctx context.Context, role string, args ...string) (*self.Process, error) {
	how, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return self.Start(ctx, append([]string{"-role", role, string(how)}, args...)...)
}
