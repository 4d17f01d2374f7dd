package main

import (
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

// measurement is what one process measures.
type measurement struct {
	URL       string
	Library   string
	Kind      string // see kinds
	Informers int
	Each      int  // objects of each informer
	Cache     bool // one cache of that many namespaces in place of informers
	Profile   string
}

// result is per informer, but for the CPU of a whole first sync.
type result struct {
	Heap, Stacks float64 // KB
	Goroutines   float64 // but for those of handlers
	CPU          float64 // seconds
}

const (
	tributary = "tributary"
	clientGo  = "client-go"
)

// settings say how much is measured.
type settings struct {
	quick           bool
	repeat          int
	only, table     string
	profile         string
	counts          []int
	informers, most int // informers of a row at most, and the objects of all of them
}

func main() {
	s := settings{counts: []int{0, 1, 3, 10, 20, 50, 110, 300, 1000, 5000, 10_000, 50_000}, informers: 300, most: 50_000}
	flag.BoolVar(&s.quick, "quick", false, "small and once: shows that everything runs, not how much it takes")
	flag.IntVar(&s.repeat, "repeat", 3, "how often each row is measured; the tables have medians")
	flag.IntVar(&s.informers, "informers", 300, "informers of a row, if they have 50,000 objects together")
	flag.StringVar(&s.only, "only", "", "measure the row with this name")
	flag.StringVar(&s.table, "table", "", "measure the table whose title begins so")
	flag.StringVar(&s.profile, "profile", "", "write the heap of our informers into this `file`")
	child := flag.String("measure", "", "a measurement in JSON, for the processes that this command starts")
	flag.Parse()
	if s.quick {
		s.counts, s.informers, s.most, s.repeat = []int{0, 3, 20}, 5, 100, 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s, *child); err != nil {
		fmt.Fprintln(os.Stderr, "small:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings, child string) error {
	if child != "" {
		var m measurement
		if err := json.Unmarshal([]byte(child), &m); err != nil {
			return err
		}
		return m.measure(ctx)
	}
	url, stop, err := serve()
	if err != nil {
		return err
	}
	defer stop()
	fmt.Printf("%s, %s/%s, %d CPUs, %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().Format(time.DateOnly))
	for _, kind := range kinds {
		if !strings.HasPrefix(kind.title, s.table) {
			continue
		}
		fmt.Printf("\n### %s, informers with one handler\n\n%s", kind.title, heading)
		for _, each := range kind.counts(s) {
			m := measurement{URL: url, Kind: kind.name, Informers: max(1, min(s.informers, s.most/max(1, each))), Each: each}
			if err := s.row(ctx, fmt.Sprint(each), m); err != nil {
				return fmt.Errorf("%d of %s: %w", each, kind.title, err)
			}
		}
	}
	const caches = "caches of controllerruntime and controller-runtime"
	if !strings.HasPrefix(caches, s.table) {
		return nil
	}
	fmt.Printf("\n### %s, per namespace\n\n%s", caches, heading)
	return s.row(ctx, "cache", measurement{URL: url, Kind: kinds[0].name, Informers: min(s.informers, 200), Each: 3, Cache: true})
}

const heading = "| objects in each | informers | | heap, KB | stacks, KB | goroutines | CPU s |\n|---|---|---|---|---|---|---|\n"

// row measures both libraries by turns, and prints their medians and the ratio.
func (s settings) row(ctx context.Context, name string, m measurement) error {
	if s.only != "" && s.only != name {
		return nil
	}
	libraries := []string{tributary, clientGo}
	all := make([][]result, len(libraries))
	for range s.repeat {
		for i, library := range libraries {
			m.Library, m.Profile = library, ""
			if library == tributary {
				m.Profile = s.profile
			}
			r, err := m.apart(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", library, err)
			}
			all[i] = append(all[i], r)
		}
	}
	for i, library := range libraries {
		fmt.Printf("| %s | %d | %s | %.1f | %.1f | %.1f | %.3f |\n", name, m.Informers, library, median(all[i], heapOf), median(all[i], stacksOf), median(all[i], goroutinesOf), median(all[i], cpuOf))
	}
	ratio := func(of figure) float64 { return median(all[0], of) / median(all[1], of) }
	fmt.Printf("| %s | %d | **ours / theirs** | **%.2f** | **%.2f** | | **%.2f** |\n", name, m.Informers, ratio(heapOf), ratio(stacksOf), ratio(cpuOf))
	return nil
}

// figure is one of a result.
type figure func(result) float64

func heapOf(r result) float64       { return r.Heap }
func stacksOf(r result) float64     { return r.Stacks }
func goroutinesOf(r result) float64 { return r.Goroutines }
func cpuOf(r result) float64        { return r.CPU }

func median(of []result, f figure) float64 {
	var values []float64
	for _, r := range of {
		values = append(values, f(r))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// apart measures in a process of its own.
func (m measurement) apart(ctx context.Context) (r result, err error) {
	what, err := json.Marshal(m)
	if err != nil {
		return r, err
	}
	cmd, err := self.Command(ctx, "-measure", string(what))
	if err != nil {
		return r, err
	}
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal([]byte(strings.TrimSpace(string(out))), &r)
}
