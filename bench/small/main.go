package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-go/tributary/bench/harness"
)

// measurement is the task of one process.
type measurement struct {
	URL       string
	Library   string
	Kind      string // see kinds
	Informers int
	Each      int           // objects of each informer
	Cache     bool          // one cache of that many namespaces in place of informers
	Program   bool          // an informer of each kind of a program
	Slim      slimming      // a factory of one informer, which keeps that; empty: informers
	Idle      time.Duration // how long nothing happens after the first state
}

// libraries are measured by turns.
var libraries = []string{tributary, clientGo}

const (
	tributary = "tributary"
	clientGo  = "client-go"
)

// sizes say how much is measured.
type sizes struct {
	counts          []int // nil: the usual ones
	informers, most int   // informers of a row at most, and the objects of all of them
	quick           bool
}

var (
	full  = sizes{most: 50_000}
	idle  = flag.Duration("idle", 2*time.Minute, "how long nothing happens in the rows of idle informers")
	curve = flag.String("curve", "", "measure the heap of 1 to 50,000 pods, alone and many, and plot it into this SVG `file`")
)

func main() {
	flag.IntVar(&full.informers, "informers", 300, "informers of a row, if they have 50,000 objects together")
	flag.Func("counts", "`numbers` of objects in each, such as 1,10, in place of the usual ones", func(text string) error {
		for count := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(count)
			if err != nil {
				return err
			}
			full.counts = append(full.counts, n)
		}
		return nil
	})
	harness.Main(3, harness.Roles{"informers": harness.Measures(start)}, measure)
}

func measure(ctx context.Context, s harness.Settings) {
	if s.Quick {
		full.informers, full.most, full.quick = 5, 100, true
	}
	url := serve()
	if *curve != "" {
		full.grow(ctx, s, url, *curve)
		return
	}
	var parts []harness.Part
	for _, kind := range kinds {
		parts = append(parts, harness.Part{Name: kind.title, Measure: func(ctx context.Context, s harness.Settings) {
			table.Begin(kind.title + ", informers with one handler")
			for _, each := range kind.counts(full) {
				full.measurementOf(url, kind, each).row(ctx, s, each)
			}
		}})
	}
	const caches, program = "caches of controllerruntime and controller-runtime", "one informer of each of seven kinds"
	s.Each(ctx, append(parts, harness.Part{Name: caches, Measure: func(ctx context.Context, s harness.Settings) {
		table.Begin(caches + ", per namespace")
		measurement{URL: url, Kind: kinds[0].Name, Informers: min(full.informers, 200), Each: 3, Cache: true}.row(ctx, s, "cache")
	}}, harness.Part{Name: program, Measure: func(ctx context.Context, s harness.Settings) {
		table.Begin(program)
		for _, each := range (kind{rows: []int{1, 3, 10, 50}}).counts(full) {
			measurement{URL: url, Kind: kinds[0].Name, Informers: len(programKinds), Each: each, Program: true}.row(ctx, s, each)
		}
	}}, harness.Part{Name: slimmingParts, Measure: func(ctx context.Context, s harness.Settings) {
		full.measureSlim(ctx, s, url)
	}}, harness.Part{Name: "idle informers", Measure: full.idle})...)
}

// usual are the counts of objects if none were asked for.
func (s sizes) usual() []int {
	if s.quick {
		return []int{0, 3, 20}
	}
	return []int{0, 1, 3, 10, 20, 50, 110, 300, 1000, 5000, 10_000, 50_000}
}

// measurementOf has as many informers as may be, without their objects being too many.
func (s sizes) measurementOf(url string, k kind, each int) measurement {
	return measurement{URL: url, Kind: k.Name, Informers: max(1, min(s.informers, s.most/max(1, each))), Each: each}
}

// table has the figures of one informer, but for the CPU of a whole first sync.
var table = harness.Table{Lead: "objects in each | informers | ", Columns: []harness.Column{
	harness.Col("heap, KB", "%.1f", "heap/1e3/informers"), harness.Col("stacks, KB", "%.1f", "stacks/1e3/informers"),
	harness.Col("goroutines", "%.1f", "goroutines/informers").Alone(), harness.Col("CPU s", "%.3f", "cpu"),
}}

// idleTable has the figures of a minute in which nothing happens.
var idleTable = harness.Table{Lead: "informers | ", Columns: []harness.Column{
	harness.Col("CPU ms a minute", "%.1f", "cpu*1e3/minutes"), harness.Col("context switches a minute", "%.0f", "switches/minutes"),
}}

// idle measures informers of which nothing changes, on a server that sends bookmarks and answers
// probes as the API server does.
func (s sizes) idle(ctx context.Context, h harness.Settings) {
	m := measurement{URL: serveIdle(s.informers), Kind: kinds[0].Name, Informers: s.informers, Each: idleEach, Idle: *idle}
	if s.quick {
		m.Idle = time.Second
	}
	idleTable.Begin(fmt.Sprintf("idle informers of %d pods each, over %s", m.Each, m.Idle))
	m.rows(ctx, h, idleTable, m.Informers)
}

// row measures both libraries, prints their medians and the ratio, and returns them.
func (m measurement) row(ctx context.Context, s harness.Settings, name any) []harness.Figures {
	return m.rows(ctx, s, table, name, m.Informers)
}

func (m measurement) rows(ctx context.Context, s harness.Settings, table harness.Table, lead ...any) []harness.Figures {
	return table.Compare(s.Repeat, libraries, func(library string) harness.Figures {
		m.Library = library
		return harness.Measure(ctx, "informers", m)
	}, lead...)
}
