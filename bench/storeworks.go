package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/store"
)

// storeWork is one kind of work of a store, which both libraries do on the same pods.
type storeWork struct {
	name    string
	indexes []int        // how many the stores have
	stores  [2]newStored // ours and client-go's
	// begin returns a function that does the work number i.
	begin func(s stored, pods []*corev1.Pod) func(i int)
}

var (
	indexers   = [2]newStored{ourStore, theirStore}
	undeltas   = [2]newStored{ourUndelta, theirUndelta}
	noneAndTwo = []int{0, 2}
	storeWorks = []storeWork{
		{"Update", noneAndTwo, indexers, updateWithSnapshots(0)},
		{"Update, a snapshot every 64", noneAndTwo, indexers, updateWithSnapshots(64)},
		{"Update, a snapshot after each", noneAndTwo, indexers, updateWithSnapshots(1)},
		{"Delete and add", noneAndTwo, indexers, func(s stored, pods []*corev1.Pod) func(int) {
			return func(i int) { p := pods[i*7919%len(pods)]; s.remove(p); s.add(p) }
		}},
		{"Get", noneAndTwo[1:], indexers, func(s stored, pods []*corev1.Pod) func(int) {
			keys := keysOf(pods)
			return func(i int) { s.get(keys[i%len(keys)]) }
		}},
		{"ByIndex, 110 found", noneAndTwo[1:], indexers, func(s stored, pods []*corev1.Pod) func(int) {
			return func(i int) { s.byNode(pods[i*7919%len(pods)].Spec.NodeName) }
		}},
		{"List", noneAndTwo[1:], indexers, func(s stored, _ []*corev1.Pod) func(int) { return func(int) { s.list() } }},
		{"UndeltaStore Update", noneAndTwo[:1], undeltas, updateWithSnapshots(0)},
	}
)

// updateWithSnapshots takes a snapshot after every so many updates; 0 is never.
func updateWithSnapshots(every int) func(s stored, pods []*corev1.Pod) func(i int) {
	return func(s stored, pods []*corev1.Pod) func(int) {
		if every == 0 {
			return updates(pods, s.update)
		}
		writes := 0
		return updates(pods, func(p *corev1.Pod) {
			s.update(p)
			if writes++; writes%every == 0 {
				s.snapshot()
			}
		})
	}
}

// keysOf are the keys of pods in no order.
func keysOf(pods []*corev1.Pod) []string {
	keys := make([]string, len(pods))
	for i := range keys {
		keys[i] = store.KeyOf(pods[i*7919%len(pods)])
	}
	return keys
}

// storeRow is one work at one size. Figures are of one operation.
type storeRow struct {
	work             string
	objects, indexes int
	figures          harness.Figures
}

func (r storeRow) String() string {
	return fmt.Sprintf("%.3g (%d objects, %d indexes)", r.ratio(), r.objects, r.indexes)
}

func (r storeRow) ratio() float64 { return r.figures["ns"] / r.figures["theirs.ns"] }

// measureWorks prints each work at each size, and in which row it is best and in which worst.
func measureWorks(sizes []int) {
	table := harness.Table{Lead: "work | objects | indexes", Columns: []harness.Column{
		harness.Col("ours, ns", "%.0f", "ns"), harness.Col("client-go, ns", "%.0f", "theirs.ns"), harness.Col("ours / client-go", "%.3g", "ns/theirs.ns"),
		harness.Col("bytes in allocations, ours", "%.0f in %.1f", "bytes allocs"), harness.Col("client-go", "%.0f in %.1f", "theirs.bytes theirs.allocs"),
	}}
	table.Begin("stores", "CPU time of the process for one operation, without the collector's, which follows the bytes; medians of 3 runs by turns.")
	var rows []storeRow
	for _, w := range storeWorks {
		for _, n := range sizes {
			for _, indexes := range w.indexes {
				r := storeRow{w.name, n, indexes, w.measure(n, indexes)}
				table.Row(r.figures, r.work, n, indexes)
				rows = append(rows, r)
			}
		}
	}
	fmt.Print("\n| ours / client-go | best | worst |\n|---|---|---|\n")
	compare := func(a, b storeRow) int { return cmp.Compare(a.ratio(), b.ratio()) }
	for _, w := range storeWorks {
		of := slices.DeleteFunc(slices.Clone(rows), func(r storeRow) bool { return r.work != w.name })
		fmt.Printf("| %s | %s | **%s** |\n", w.name, slices.MinFunc(of, compare), slices.MaxFunc(of, compare))
	}
}

// measure does the work by turns, and takes the medians.
func (w storeWork) measure(objects, indexes int) harness.Figures {
	pods := barePods(objects)
	var runs []*storeRun
	for _, make := range w.stores {
		runs = append(runs, newRun(w.begin(make(pods, indexes), pods)))
	}
	medians := harness.ByTurns(3, runs, (*storeRun).figures)
	return medians[0].With("theirs.", medians[1])
}

// storeRun does something again and again, in batches that take a measurable time.
type storeRun struct {
	do        func(i int)
	done, few int
}

func newRun(do func(i int)) *storeRun {
	r := &storeRun{do: do, few: 1}
	// This warms up, too.
	for began := harness.CPU(); (harness.CPU() - began).Seconds() < 0.02; r.few *= 2 {
		r.times(r.few)
	}
	return r
}

func (r *storeRun) times(n int) {
	for range n {
		r.do(r.done)
		r.done++
	}
}

// figures are of at least 0.2 s of CPU time, without a collection: one would fall into few of the
// runs, and mark the objects of all.
func (r *storeRun) figures() harness.Figures {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	allocated := func() harness.Figures {
		return harness.Figures{"allocs": harness.Metric("/gc/heap/allocs:objects"), "bytes": harness.Metric("/gc/heap/allocs:bytes")}
	}
	before, began, n := allocated(), harness.CPU(), 0
	for (harness.CPU() - began).Seconds() < 0.2 {
		r.times(r.few)
		n += r.few
	}
	spent := float64((harness.CPU() - began).Nanoseconds())
	f := allocated().Since(before)
	return harness.Figures{"ns": spent / float64(n), "bytes": f["bytes"] / float64(n), "allocs": f["allocs"] / float64(n)}
}
