package main

import (
	"context"
	"fmt"

	"github.com/tributary-go/tributary/bench/harness"
)

// row is a measurement of both libraries, by turns.
type row struct {
	name    string
	measure informing
}

// informerTable is one table: a line for each row and library, and their ratio.
type informerTable struct {
	name, note string
	rows       []row
	columns    []harness.Column
}

func informerTables(s settings) []informerTable {
	deliver := func(name string, handlers, indexes, events int) row {
		return row{name, informing{What: "deliver", Handlers: handlers, Indexes: indexes, Pods: s.EventPods, Events: events}}
	}
	return []informerTable{
		{
			name: "informers, delivery",
			note: fmt.Sprintf("Updates of %d pods, from the source until the last handler has returned from them.", s.EventPods),
			rows: []row{
				deliver("1 handler", 1, 0, s.Events), deliver("1 handler, an index", 1, 1, s.Events),
				deliver("10 handlers", 10, 0, s.Events/2), deliver("100 handlers", 100, 0, s.Events/5),
			},
			columns: []harness.Column{
				harness.Col("us/event", "%.2f", "wall"), harness.Col("deliveries/s", "%.0f", "deliveries"), harness.Col("CPU us/event", "%.2f", "cpu"),
				harness.Col("allocs/event", "%.1f", "allocs"), harness.Col("B/event", "%.0f", "bytes"), harness.Col("live heap MB", "%.1f", "live"),
			},
		},
		{
			name: "informers, a handler more",
			note: fmt.Sprintf("A handler is added to a running informer of %d pods, until it has returned from the last of them.", s.Pods),
			rows: []row{{"add", informing{What: "add", Pods: s.Pods}}},
			columns: []harness.Column{
				harness.Col("ms", "%.2f", "wall"), harness.Col("CPU ms", "%.2f", "cpu"), harness.Col("allocs", "%.0f", "allocs"),
				harness.Col("MB allocated", "%.2f", "bytes"), harness.Col("peak heap above, MB", "%.1f", "peak"),
			},
		},
		{
			name: "informers, readers beside a writer",
			note: fmt.Sprintf("Four goroutines read an informer of %d pods, all of them or the 110 of a node by index, "+
				"while the source brings as many updates as are taken, 5,000/s at most.", s.Pods),
			rows: []row{{"ByIndex", informing{What: "read", Read: "ByIndex", Pods: s.Pods}}, {"List", informing{What: "read", Read: "List", Pods: s.Pods}}},
			columns: []harness.Column{
				harness.Col("reads/s", "%.0f", "reads"), harness.Col("updates/s", "%.0f", "writes"), harness.Col("CPU us/read", "%.2f", "cpu"),
				harness.Col("B/read", "%.0f", "bytes"), harness.Col("peak heap MB", "%.0f", "peak"),
			},
		},
		{
			name: "informers, a handler that sleeps",
			note: fmt.Sprintf("%d updates of %d pods that share no memory, some 2.5 KB each. One handler keeps up; another one sleeps through all of them, "+
				"then wakes and comes to know the newest versions. Heap is above what was held before.", s.Events, s.EventPods),
			rows: []row{
				{"nobody sleeps", informing{What: "stall", Pods: s.EventPods, Events: s.Events}},
				{"one sleeps", informing{What: "stall", Pods: s.EventPods, Events: s.Events, Stalled: true}},
			},
			columns: []harness.Column{
				harness.Col("peak heap MB", "%.0f", "peak"), harness.Col("live heap MB", "%.1f", "live"), harness.Col("wall s", "%.2f", "wall"),
				harness.Col("events told once awake", "%.0f", "told").Alone(), harness.Col("until it knows all, ms", "%.1f", "after").Alone(),
			},
		},
	}
}

func (t informerTable) measure(ctx context.Context, s settings) {
	table := harness.Table{Lead: "| ", Columns: t.columns, Noise: 0.5}
	table.Begin(t.name, t.note)
	for _, r := range t.rows {
		table.Compare(s.Repeat, []string{ours, clientGo}, func(library string) harness.Figures {
			r.measure.Library = library
			return harness.Measure(ctx, "inform", r.measure)
		}, r.name)
	}
}
