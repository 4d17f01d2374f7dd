package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

// measurement is the task of one process.
type measurement struct {
	URL string
	// Kubeconfig is of a real cluster, in place of the URL; how many pods it has is not known.
	Kubeconfig string
	Library    string // tributary or controller-runtime
	Objects    int
	Trim       bool          // keep only what a controller of pods' states reads
	Each       time.Duration // how long each kind of read is repeated
	Settings   []string      // of the garbage collector, in the environment
}

var kubeconfig = flag.String("kubeconfig", "", "measure the pods of the cluster in this `file` instead")

func main() {
	harness.Main(3, harness.Roles{"read": harness.Measures(read), "secrets": harness.Measures(readSecrets)}, measure)
}

func measure(ctx context.Context, s harness.Settings) {
	pods, many, each := 50_000, 88_000, time.Second
	if s.Quick {
		pods, many, each = 1000, 1500, 20*time.Millisecond
	}
	if *kubeconfig != "" {
		measurement{Kubeconfig: *kubeconfig, Each: each}.table(ctx, s, "stripped pods of a cluster")
		return
	}
	part := func(title string, m measurement) harness.Part {
		return harness.Part{Name: title, Measure: func(ctx context.Context, s harness.Settings) {
			m.URL, m.Each = serve(m.Objects), each
			m.table(ctx, s, title)
		}}
	}
	s.Each(ctx, part("stripped pods", measurement{Objects: pods}), part("many pods", measurement{Objects: many}),
		part("many pods, trimmed", measurement{Objects: many, Trim: true}), harness.Part{Name: "Secrets by name", Measure: measureSecrets})
}

// subjects are measured by turns. Equal settings of the collector are not equal memory: the last
// one has more than the first, and still less than controller-runtime's cache. If objects are
// trimmed to fit into a bound, it has the bound in place of that.
func (m measurement) subjects() (all []measurement) {
	last := []string{"GOGC=200"}
	if m.Trim {
		last = []string{"GOGC=100", "GOMEMLIMIT=460MiB"}
	}
	for _, subject := range []measurement{
		{Library: "tributary", Settings: []string{"GOGC=100"}}, {Library: "controller-runtime", Settings: []string{"GOGC=100"}}, {Library: "tributary", Settings: last},
	} {
		one := m
		one.Library, one.Settings = subject.Library, subject.Settings
		all = append(all, one)
	}
	return all
}

func (m measurement) String() string { return fmt.Sprint(m.Library, " ", m.Settings) }

// table measures both caches by turns, and prints their medians and ratios.
func (m measurement) table(ctx context.Context, s harness.Settings, title string) {
	subjects := m.subjects()
	medians := harness.ByTurns(s.Repeat, subjects, func(m measurement) harness.Figures { return harness.Measure(ctx, "read", m, m.Settings...) })
	table := harness.Table{Lead: "", Columns: []harness.Column{
		harness.Col("live heap MB", "%.4g", "live/1e6"), harness.Col("first RSS MB", "%.4g", "first/1e6"), harness.Col("last RSS MB", "%.4g", "last/1e6"),
		harness.Col("CPU s until synced", "%.3g", "cpu"), harness.Col("CPU us: Get", "%.4g", "get"), harness.Col("not copied", "%.4g", "get.shared"),
		harness.Col("List by index", "%.4g", "index"), harness.Col("not copied", "%.4g", "index.shared"),
		harness.Col("List by a label of none", "%.4g", "none"), harness.Col("List of all", "%.4g", "all"), harness.Col("not copied", "%.4g", "all.shared"),
	}}
	table.Begin(fmt.Sprintf("%s (%.0f objects)", title, medians[0]["objects"]))
	harness.Rows(table, subjects, medians)
	table.Ratio(medians[0], medians[1], "**ours / theirs**")
	table.Ratio(medians[2], medians[1], fmt.Sprint("**ours / theirs**, ", subjects[2].Settings))
}

// serve sends the pods to each watch list.
func serve(pods int) (url string) {
	codec := world.CodecOf("Pod", 50, world.Protobuf)
	items := make([][]byte, pods)
	for i := range items {
		items[i] = codec.Object(i, i, 0)
	}
	all := world.State{Codec: codec, Items: slices.Values(items), Version: world.Version(pods)}
	return harness.Serving{}.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { all.Send(w, r, nil) }))
}
