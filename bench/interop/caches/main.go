package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// measurement is one row: a process of its own.
type measurement struct {
	URL string
	// Kubeconfig is of a real cluster, in place of the URL; how many pods it has is not known.
	Kubeconfig string
	Library    string // tributary or controller-runtime
	GOGC       int
	Limit      string // GOMEMLIMIT
	Form       string // pods or widgets
	Objects    int
	Keep       bool          // keep managedFields
	Trim       bool          // keep only what a controller of pods' states reads
	Each       time.Duration // how long each kind of read is repeated
}

// result is what one process measured.
type result struct {
	Objects                              int
	Live, Peak, RSS, PeakRSS, ReadingRSS float64            // MB
	CPU                                  float64            // seconds, to the synced cache
	Reads                                map[string]float64 // CPU microseconds per read
}

func main() {
	quick := flag.Bool("quick", false, "small and once: shows that everything runs, not how fast")
	child := flag.String("measure", "", "a measurement in JSON, for the processes that this command starts")
	repeat := flag.Int("repeat", 3, "how often each row is measured; the tables have medians")
	only := flag.String("only", "", "the table whose title begins so (default: all)")
	kubeconfig := flag.String("kubeconfig", "", "measure the pods of the cluster in this `file` instead")
	flag.Parse()
	if err := run(*child, *only, *kubeconfig, *quick, *repeat); err != nil {
		fmt.Fprintln(os.Stderr, "caches:", err)
		os.Exit(1)
	}
}

func run(child, only, kubeconfig string, quick bool, repeat int) error {
	if child != "" {
		var m measurement
		if err := json.Unmarshal([]byte(child), &m); err != nil {
			return err
		}
		return m.measure(context.Background())
	}
	pods, widgets, many, each := 50_000, 20_000, 88_000, time.Second
	if quick {
		pods, widgets, many, each, repeat = 1000, 500, 1500, 20*time.Millisecond, 1
	}
	if kubeconfig != "" {
		return table("stripped pods of a cluster", measurement{Form: "pods", Kubeconfig: kubeconfig, Each: each}, repeat)
	}
	for _, row := range []struct {
		title string
		m     measurement
	}{
		{"stripped pods", measurement{Form: "pods", Objects: pods}},
		{"pods with managedFields", measurement{Form: "pods", Objects: pods, Keep: true}},
		{"custom resources, unstructured", measurement{Form: "widgets", Objects: widgets}},
		{"many pods", measurement{Form: "pods", Objects: many}},
		{"many pods, trimmed", measurement{Form: "pods", Objects: many, Trim: true}},
	} {
		if !strings.HasPrefix(row.title, only) {
			continue
		}
		row.m.Each = each
		if err := table(row.title, row.m, repeat); err != nil {
			return err
		}
	}
	return nil
}

// columns are what each table compares. Equal settings of the collector are not equal memory: the
// last one has more than the first, and still less than controller-runtime's cache. If objects are
// trimmed to fit into a bound, it has the bound in place of that.
func (m measurement) columns() (columns [3]measurement, last string) {
	columns = [3]measurement{m, m, m}
	columns[0].Library, columns[1].Library, columns[2].Library = "tributary", "controller-runtime", "tributary"
	columns[0].GOGC, columns[1].GOGC, columns[2].GOGC = 100, 100, 200
	if m.Trim {
		columns[2].GOGC, columns[2].Limit = 100, "460MiB"
		return columns, "GOMEMLIMIT=" + columns[2].Limit
	}
	return columns, "GOGC=200"
}

// table measures both caches by turns, and prints their medians and ratios.
func table(title string, m measurement, repeat int) error {
	if m.Kubeconfig == "" {
		url, stop, err := serve(m)
		if err != nil {
			return err
		}
		defer stop()
		m.URL = url
	}
	columns, last := m.columns()
	results := make([][]result, len(columns))
	for range repeat {
		for i, column := range columns {
			r, err := column.apart()
			if err != nil {
				return fmt.Errorf("%s of %s: %w", title, column.Library, err)
			}
			results[i] = append(results[i], r)
		}
	}
	fmt.Printf("\n### %s (%d objects)\n\n", title, results[0][0].Objects)
	fmt.Printf("| | tributary | controller-runtime | ratio | tributary, %s | ratio |\n", last)
	fmt.Println("|---|---|---|---|---|---|")
	line := func(name string, of func(result) float64) {
		ours, theirs, more := median(results[0], of), median(results[1], of), median(results[2], of)
		fmt.Printf("| %s | %.4g | %.4g | %.2f | %.4g | %.2f |\n", name, ours, theirs, ours/theirs, more, more/theirs)
	}
	line("live heap MB", func(r result) float64 { return r.Live })
	line("peak heap MB", func(r result) float64 { return r.Peak })
	line("RSS after a collection MB", func(r result) float64 { return r.RSS })
	line("peak RSS MB", func(r result) float64 { return r.PeakRSS })
	line("peak RSS with all reads MB", func(r result) float64 { return r.ReadingRSS })
	line("CPU s until synced", func(r result) float64 { return r.CPU })
	for _, read := range readNames {
		line(read+", CPU us", func(r result) float64 { return r.Reads[read] })
	}
	return nil
}

func (m measurement) apart() (r result, err error) {
	arguments, err := json.Marshal(m)
	if err != nil {
		return r, err
	}
	command := exec.Command(os.Args[0], "-measure", string(arguments))
	command.Stderr = os.Stderr
	command.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "GOGC=") || strings.HasPrefix(s, "GOMEMLIMIT=")
	}), fmt.Sprint("GOGC=", m.GOGC))
	if m.Limit != "" {
		command.Env = append(command.Env, "GOMEMLIMIT="+m.Limit)
	}
	out, err := command.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

func median(results []result, of func(result) float64) float64 {
	var all []float64
	for _, r := range results {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
