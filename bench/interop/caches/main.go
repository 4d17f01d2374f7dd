package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
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

func main() { harness.Main(3, harness.Roles{"read": harness.Measures(read)}, measure) }

func measure(ctx context.Context, s harness.Settings) error {
	pods, many, each := 50_000, 88_000, time.Second
	if s.Quick {
		pods, many, each = 1000, 1500, 20*time.Millisecond
	}
	if *kubeconfig != "" {
		return measurement{Kubeconfig: *kubeconfig, Each: each}.table(ctx, s, "stripped pods of a cluster")
	}
	var parts []harness.Part
	for _, row := range []struct {
		title string
		m     measurement
	}{
		{"stripped pods", measurement{Objects: pods, Each: each}},
		{"many pods", measurement{Objects: many, Each: each}},
		{"many pods, trimmed", measurement{Objects: many, Each: each, Trim: true}},
	} {
		parts = append(parts, harness.Part{Name: row.title, Measure: func(ctx context.Context, s harness.Settings) (err error) {
			if row.m.URL, err = serve(row.m.Objects); err != nil {
				return err
			}
			return row.m.table(ctx, s, row.title)
		}})
	}
	return s.Each(ctx, parts...)
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

// table measures both caches by turns, and prints their medians and ratios.
func (m measurement) table(ctx context.Context, s harness.Settings, title string) error {
	subjects := m.subjects()
	medians, err := harness.ByTurns(s.Repeat, subjects, func(m measurement) (harness.Figures, error) {
		return harness.Measure(ctx, "read", m, m.Settings...)
	})
	if err != nil {
		return err
	}
	table := harness.Table{Lead: "", Columns: []harness.Column{
		harness.Col("live heap MB", "%.4g", "live/1e6"), harness.Col("first RSS MB", "%.4g", "first/1e6"), harness.Col("last RSS MB", "%.4g", "last/1e6"),
		harness.Col("CPU s until synced", "%.3g", "cpu"), harness.Col("CPU us: Get", "%.4g", "get"), harness.Col("not copied", "%.4g", "get.shared"),
		harness.Col("List by index", "%.4g", "index"), harness.Col("not copied", "%.4g", "index.shared"),
		harness.Col("List by a label of none", "%.4g", "none"), harness.Col("List of all", "%.4g", "all"), harness.Col("not copied", "%.4g", "all.shared"),
	}}
	table.Begin(fmt.Sprintf("%s (%.0f objects)", title, medians[0]["objects"]))
	theirs := medians[1]
	for i, f := range medians {
		table.Row(f, fmt.Sprint(subjects[i].Library, " ", subjects[i].Settings))
	}
	table.Ratio(medians[0], theirs, "**ours / theirs**")
	table.Ratio(medians[2], theirs, fmt.Sprint("**ours / theirs**, ", subjects[2].Settings))
	return nil
}

// serve sends the pods to each watch list.
func serve(pods int) (url string, err error) {
	codec := world.CodecOf("Pod", 50, world.Protobuf)
	items := make([][]byte, pods)
	for i := range items {
		items[i] = codec.Object(i, i, 0)
	}
	return harness.Serving{}.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "true" {
			http.Error(w, "this server knows watches only", http.StatusNotImplemented)
			return
		}
		w.Header().Set("Content-Type", harness.Watch)
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			codec.Initial(w, items, world.Version(pods))
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
}
