package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/tributary-go/tributary/bench/harness"
)

// settings say how much is measured.
type settings struct {
	harness.Settings
	Pods, PerSet, Widgets int
	Kind                  string // of the built-in objects
	Events, EventPods     int

	curve      string
	kubeconfig string // of a real cluster
	fill       bool   // it with pods
	growth     []int  // sizes of the curve
}

func main() {
	s := settings{PerSet: 50, Widgets: 50_000, growth: []int{1_000, 10_000, 50_000, 100_000}}
	flag.IntVar(&s.Pods, "pods", 50_000, "pods of a first sync and of a relist")
	flag.StringVar(&s.Kind, "kind", "", "the kind of the built-in objects in place of pods; the table of kinds has this row only")
	flag.IntVar(&s.Events, "events", 200_000, "events of a watch")
	flag.IntVar(&s.EventPods, "event-pods", 10_000, "pods that the events are about")
	flag.StringVar(&s.curve, "curve", "", "measure growth from 1,000 to 100,000 pods instead, and plot it into this SVG `file`")
	flag.StringVar(&s.kubeconfig, "kubeconfig", "", "measure a first sync of the pods of the cluster in this `file` instead")
	flag.BoolVar(&s.fill, "fill", false, "create -pods pods in that cluster first, which should be a test's")
	harness.Main(3, harness.Roles{
		"serve": harness.Acts(serve), "read": harness.Measures(read), "inform": harness.Measures(inform),
		"latency": harness.Measures(follow), "few": harness.Measures(fillFew), "stores": harness.Acts(measureStores),
	}, func(ctx context.Context, given harness.Settings) {
		if s.Settings = given; s.Quick {
			s.growth = []int{200, 1_000}
			s.Pods, s.Widgets, s.Events, s.EventPods = 1000, 500, 2000, 200
		}
		switch {
		case s.kubeconfig != "":
			measureCluster(ctx, s)
		case s.curve != "":
			measureGrowth(ctx, s)
		default:
			s.Each(ctx, parts(s)...)
		}
	})
}

// parts are what the settings want.
func parts(s settings) (parts []harness.Part) {
	add := func(name string, measure func(context.Context, settings)) {
		parts = append(parts, harness.Part{Name: name, Measure: func(ctx context.Context, _ harness.Settings) { measure(ctx, s) }})
	}
	for _, c := range scenarios(s) {
		add(c.name, c.printed)
	}
	add("cores", measureCores)
	add("at rest", measureRest)
	if s.Kind == "" {
		add("at rest: resident memory", measurePeaks)
		add("at rest: few pods", measureFewPods)
	}
	add("kinds", measureKinds)
	for _, t := range informerTables(s) {
		add(t.name, t.measure)
	}
	add("latency", measureLatency)
	add("stores", func(ctx context.Context, s settings) { harness.Print(ctx, "stores", s) })
	return parts
}

// repetitions names the runs that make a figure.
func (s settings) repetitions() string {
	if s.Repeat == 1 {
		return "1 repetition"
	}
	return fmt.Sprintf("%d repetitions, medians", s.Repeat)
}
