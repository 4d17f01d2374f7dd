package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// column is a figure of a table of informers.
type column struct {
	name, figure, format string
	ratio                bool // is given as ours to client-go's
}

// row is a measurement of both libraries, by turns.
type row struct {
	name    string
	measure informing
}

// informerTable is one table: a line for each row and library, and their ratio.
type informerTable struct {
	name, note string
	rows       []row
	columns    []column
}

func informerTables(s settings) []informerTable {
	deliver := func(name string, handlers, indexes, events int) row {
		return row{name, informing{What: "deliver", Handlers: handlers, Indexes: indexes, Pods: s.eventPods, Events: events}}
	}
	return []informerTable{
		{
			name: "informers, delivery",
			note: fmt.Sprintf("Updates of %d pods, from the source until the last handler has returned from them; "+
				"*the source alone* is in all figures of both.", s.eventPods),
			rows: []row{
				deliver("1 handler", 1, 0, s.events), deliver("1 handler, an index", 1, 1, s.events),
				deliver("10 handlers", 10, 0, s.events/2), deliver("100 handlers", 100, 0, s.events/5),
			},
			columns: []column{
				{"us/event", "wall", "%.2f", true}, {"deliveries/s", "deliveries", "%.0f", true}, {"CPU us/event", "cpu", "%.2f", true},
				{"allocs/event", "allocs", "%.1f", true}, {"B/event", "bytes", "%.0f", true}, {"live heap MB", "live", "%.1f", true},
			},
		},
		{
			name: "informers, a handler more",
			note: fmt.Sprintf("A handler is added to a running informer of %d pods, until it has returned from the last of them.", s.pods),
			rows: []row{{"add", informing{What: "add", Pods: s.pods}}},
			columns: []column{
				{"ms", "wall", "%.2f", true}, {"CPU ms", "cpu", "%.2f", true}, {"allocs", "allocs", "%.0f", true},
				{"MB allocated", "bytes", "%.2f", true}, {"peak heap above, MB", "peak", "%.1f", true},
			},
		},
		{
			name: "informers, readers beside a writer",
			note: fmt.Sprintf("Four goroutines read an informer of %d pods, all of them or the 110 of a node by index, "+
				"while the source brings as many updates as are taken, 5,000/s at most.", s.pods),
			rows: []row{{"ByIndex", informing{What: "read", Read: "ByIndex", Pods: s.pods}}, {"List", informing{What: "read", Read: "List", Pods: s.pods}}},
			columns: []column{
				{"reads/s", "reads", "%.0f", true}, {"updates/s", "writes", "%.0f", true}, {"CPU us/read", "cpu", "%.2f", true},
				{"B/read", "bytes", "%.0f", true}, {"peak heap MB", "peak", "%.0f", true},
			},
		},
		{
			name: "informers, a handler that sleeps",
			note: fmt.Sprintf("%d updates of %d pods that share no memory, some 2.5 KB each. One handler keeps up; another one sleeps through all of them, "+
				"then wakes and comes to know the newest versions. Heap is above what was held before.", s.events, s.eventPods),
			rows: []row{
				{"nobody sleeps", informing{What: "stall", Pods: s.eventPods, Events: s.events}},
				{"one sleeps", informing{What: "stall", Pods: s.eventPods, Events: s.events, Stalled: true}},
			},
			columns: []column{
				{"peak heap MB", "peak", "%.0f", true}, {"live heap MB", "live", "%.1f", true}, {"wall s", "wall", "%.2f", true},
				{"events told once awake", "told", "%.0f", false}, {"until it knows all, ms", "after", "%.1f", false},
			},
		},
	}
}

// measureInformers prints the tables of informers.
func measureInformers(ctx context.Context, s settings) error {
	for _, t := range informerTables(s) {
		if !strings.Contains(t.name, s.only) {
			continue
		}
		if err := t.measure(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

func (t informerTable) measure(ctx context.Context, s settings) error {
	fmt.Printf("\n### %s\n\n%s\n\n| | ", t.name, t.note)
	for _, c := range t.columns {
		fmt.Printf("| %s ", c.name)
	}
	fmt.Printf("|\n|---|%s\n", strings.Repeat("---|", 1+len(t.columns)))
	if m := t.rows[0].measure; m.What == "deliver" {
		m.Library, m.Handlers = "source", 0
		medians, err := s.inform(ctx, m)
		if err != nil {
			return err
		}
		delete(medians[0], "deliveries")
		t.line("the source alone", "", medians[0])
	}
	for _, r := range t.rows {
		ours, theirs := r.measure, r.measure
		ours.Library, theirs.Library = "tributary", "client-go"
		medians, err := s.inform(ctx, ours, theirs)
		if err != nil {
			return err
		}
		t.line(r.name, "tributary", medians[0])
		t.line(r.name, "client-go", medians[1])
		ratios := map[string]float64{}
		for _, c := range t.columns {
			// Less is noise.
			if a, b := medians[0][c.figure], medians[1][c.figure]; c.ratio && b > 0.5 {
				ratios[c.figure] = a / b
			}
		}
		t.ratios(r.name, ratios)
	}
	return nil
}

func (t informerTable) line(name, library string, figures map[string]float64) {
	fmt.Printf("| %s | %s ", name, library)
	for _, c := range t.columns {
		if value, ok := figures[c.figure]; ok {
			fmt.Printf("| "+c.format+" ", value)
		} else {
			fmt.Print("| ")
		}
	}
	fmt.Println("|")
}

func (t informerTable) ratios(name string, of map[string]float64) {
	fmt.Printf("| %s | **ours / client-go's** ", name)
	for _, c := range t.columns {
		if value, ok := of[c.figure]; ok {
			fmt.Printf("| **%.2f** ", value)
		} else {
			fmt.Print("| ")
		}
	}
	fmt.Println("|")
}

// inform makes measurements by turns, each in a process of its own, and returns the medians of
// their figures.
func (s settings) inform(ctx context.Context, measurements ...informing) ([]map[string]float64, error) {
	all := make([]map[string][]float64, len(measurements))
	for range s.repeat {
		for i, m := range measurements {
			what, err := json.Marshal(m)
			if err != nil {
				return nil, err
			}
			cmd, err := s.start(ctx, "inform", string(what))
			if err != nil {
				return nil, err
			}
			var figures map[string]float64
			if err := output(cmd, &figures); err != nil {
				return nil, fmt.Errorf("%s: %w", m.Library, err)
			}
			if all[i] == nil {
				all[i] = map[string][]float64{}
			}
			for name, value := range figures {
				all[i][name] = append(all[i][name], value)
			}
		}
	}
	medians := make([]map[string]float64, len(all))
	for i, of := range all {
		medians[i] = map[string]float64{}
		for name, values := range of {
			slices.Sort(values)
			medians[i][name] = values[len(values)/2]
		}
	}
	return medians, nil
}
