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
	"strconv"
	"strings"
	"time"

	"github.com/tributary-go/tributary/internal/self"
)

// measurement is the task of one process.
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
	profile, curve  string
	counts          []int // nil: the usual ones
	informers, most int   // informers of a row at most, and the objects of all of them
}

func main() {
	s := settings{most: 50_000}
	flag.BoolVar(&s.quick, "quick", false, "small and once: shows that everything runs, not how much it takes")
	flag.IntVar(&s.repeat, "repeat", 3, "how often each row is measured; the tables have medians")
	flag.IntVar(&s.informers, "informers", 300, "informers of a row, if they have 50,000 objects together")
	flag.StringVar(&s.only, "only", "", "measure the row with this name")
	flag.StringVar(&s.table, "table", "", "measure the table whose title begins so")
	flag.StringVar(&s.profile, "profile", "", "write the heap of our informers into this `file`")
	flag.StringVar(&s.curve, "curve", "", "measure the heap of 1 to 50,000 pods, alone and many, and plot it into this SVG `file`")
	flag.Func("counts", "objects in each, such as 1,5,12, in place of the usual `numbers`", func(text string) (err error) {
		s.counts, err = numbers(text)
		return err
	})
	child := flag.String("measure", "", "a measurement in JSON, for the processes that this command starts")
	flag.Parse()
	if s.quick {
		s.informers, s.most, s.repeat = 5, 100, 1
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
	if s.curve != "" {
		return s.grow(ctx, url)
	}
	for _, kind := range kinds {
		if !strings.HasPrefix(kind.title, s.table) {
			continue
		}
		fmt.Printf("\n### %s, informers with one handler\n\n%s", kind.title, heading)
		for _, each := range kind.counts(s) {
			if _, err := s.row(ctx, fmt.Sprint(each), s.measurementOf(url, kind, each)); err != nil {
				return fmt.Errorf("%d of %s: %w", each, kind.title, err)
			}
		}
	}
	const caches = "caches of controllerruntime and controller-runtime"
	if !strings.HasPrefix(caches, s.table) {
		return nil
	}
	fmt.Printf("\n### %s, per namespace\n\n%s", caches, heading)
	_, err = s.row(ctx, "cache", measurement{URL: url, Kind: kinds[0].Name, Informers: min(s.informers, 200), Each: 3, Cache: true})
	return err
}

// usual are the counts of objects if none were asked for.
func (s settings) usual() []int {
	if s.quick {
		return []int{0, 3, 20}
	}
	return []int{0, 1, 3, 10, 20, 50, 110, 300, 1000, 5000, 10_000, 50_000}
}

// numbers are separated by commas.
func numbers(text string) (counts []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		count, err := strconv.Atoi(part)
		if err != nil || count < 0 {
			return nil, fmt.Errorf("%q is no number of objects", part)
		}
		counts = append(counts, count)
	}
	return counts, nil
}

// measurementOf has as many informers as may be, without their objects being too many.
func (s settings) measurementOf(url string, k kind, each int) measurement {
	return measurement{URL: url, Kind: k.Name, Informers: max(1, min(s.informers, s.most/max(1, each))), Each: each}
}

const heading = "| objects in each | informers | | heap, KB | stacks, KB | goroutines | CPU s |\n|---|---|---|---|---|---|---|\n"

// libraries are measured by turns.
var libraries = []string{tributary, clientGo}

// row measures both libraries, prints their medians and the ratio, and returns the heap of each.
func (s settings) row(ctx context.Context, name string, m measurement) (heap []float64, err error) {
	if s.only != "" && s.only != name {
		return nil, nil
	}
	all := make([][]result, len(libraries))
	for range s.repeat {
		for i, library := range libraries {
			m.Library, m.Profile = library, ""
			if library == tributary {
				m.Profile = s.profile
			}
			r, err := m.apart(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", library, err)
			}
			all[i] = append(all[i], r)
		}
	}
	for i, library := range libraries {
		heap = append(heap, median(all[i], heapOf))
		fmt.Printf("| %s | %d | %s | %.1f | %.1f | %.1f | %.3f |\n", name, m.Informers, library, median(all[i], heapOf), median(all[i], stacksOf), median(all[i], goroutinesOf), median(all[i], cpuOf))
	}
	ratio := func(of figure) float64 { return median(all[0], of) / median(all[1], of) }
	fmt.Printf("| %s | %d | **ours / theirs** | **%.2f** | **%.2f** | | **%.2f** |\n", name, m.Informers, ratio(heapOf), ratio(stacksOf), ratio(cpuOf))
	return heap, nil
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
