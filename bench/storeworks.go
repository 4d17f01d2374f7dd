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
	name         string
	indexes      []int // how many the stores have
	ours, theirs func(pods []*corev1.Pod, indexes int) func(i int)
}

var storeWorks = []storeWork{
	{"Update", []int{0, 2}, updateWithSnapshots(0), theirUpdate},
	{"Update, a snapshot every 64", []int{0, 2}, updateWithSnapshots(64), theirUpdate},
	{"Update, a snapshot after each", []int{0, 2}, updateWithSnapshots(1), theirUpdate},
	{
		"Delete and add", []int{0, 2},
		func(pods []*corev1.Pod, indexes int) func(int) {
			x := ourIndexer(pods, indexes)
			return func(i int) { p := pods[i*7919%len(pods)]; _ = x.Delete(p); _ = x.Add(p) }
		},
		func(pods []*corev1.Pod, indexes int) func(int) {
			y := theirIndexer(pods, indexes)
			return func(i int) { p := pods[i*7919%len(pods)]; _ = y.Delete(p); _ = y.Add(p) }
		},
	},
	{
		"Get", []int{2},
		func(pods []*corev1.Pod, indexes int) func(int) {
			x, keys := ourIndexer(pods, indexes), keysOf(pods)
			return func(i int) { x.Snapshot().Get(keys[i%len(keys)]) }
		},
		func(pods []*corev1.Pod, indexes int) func(int) {
			y, keys := theirIndexer(pods, indexes), keysOf(pods)
			return func(i int) { _, _, _ = y.GetByKey(keys[i%len(keys)]) }
		},
	},
	{
		"ByIndex, 110 found", []int{2},
		func(pods []*corev1.Pod, indexes int) func(int) {
			x := ourIndexer(pods, indexes)
			return func(i int) {
				for range byNode.Objects(x.Snapshot(), pods[i*7919%len(pods)].Spec.NodeName) {
				}
			}
		},
		func(pods []*corev1.Pod, indexes int) func(int) {
			y := theirIndexer(pods, indexes)
			return func(i int) { _, _ = y.ByIndex("node", pods[i*7919%len(pods)].Spec.NodeName) }
		},
	},
	{
		"List", []int{2},
		func(pods []*corev1.Pod, indexes int) func(int) {
			x := ourIndexer(pods, indexes)
			return func(int) {
				for range x.Snapshot().All() {
				}
			}
		},
		func(pods []*corev1.Pod, indexes int) func(int) {
			y := theirIndexer(pods, indexes)
			return func(int) { _ = y.List() }
		},
	},
	{
		"UndeltaStore Update", []int{0},
		func(pods []*corev1.Pod, _ int) func(int) { return updates(pods, undeltaOf(pods)) },
		func(pods []*corev1.Pod, _ int) func(int) { return updates(pods, theirUndeltaOf(pods)) },
	},
}

// updateWithSnapshots takes a snapshot after every so many updates; 0 is never.
func updateWithSnapshots(every int) func(pods []*corev1.Pod, indexes int) func(int) {
	return func(pods []*corev1.Pod, indexes int) func(int) {
		x, writes := ourIndexer(pods, indexes), 0
		return updates(pods, func(p *corev1.Pod) {
			_ = x.Update(p)
			if writes++; every > 0 && writes%every == 0 {
				x.Snapshot()
			}
		})
	}
}

func theirUpdate(pods []*corev1.Pod, indexes int) func(int) {
	y := theirIndexer(pods, indexes)
	return updates(pods, func(p *corev1.Pod) { _ = y.Update(p) })
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
	work             storeWork
	objects, indexes int
	ours, theirs     storeFigures
}

type storeFigures struct{ ns, bytes, allocs float64 }

func (r storeRow) ratio() float64 { return r.ours.ns / r.theirs.ns }

// measure does the work by turns, and takes the medians.
func (w storeWork) measure(objects, indexes int) storeRow {
	const runs = 3
	pods := barePods(objects)
	ours, theirs := newRun(w.ours(pods, indexes)), newRun(w.theirs(pods, indexes))
	var a, b [runs]storeFigures
	for i := range runs {
		a[i], b[i] = ours.figures(), theirs.figures()
	}
	median := func(f [runs]storeFigures) storeFigures {
		slices.SortFunc(f[:], func(x, y storeFigures) int { return cmp.Compare(x.ns, y.ns) })
		return f[runs/2]
	}
	return storeRow{work: w, objects: objects, indexes: indexes, ours: median(a), theirs: median(b)}
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
func (r *storeRun) figures() storeFigures {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	allocs, bytes, began, n := allocated(), allocatedBytes(), harness.CPU(), 0
	for (harness.CPU() - began).Seconds() < 0.2 {
		r.times(r.few)
		n += r.few
	}
	per := func(x float64) float64 { return x / float64(n) }
	return storeFigures{
		ns:    per(float64((harness.CPU() - began).Nanoseconds())),
		bytes: per(allocatedBytes() - bytes), allocs: per(allocated() - allocs),
	}
}

func allocated() float64      { return harness.Metric("/gc/heap/allocs:objects") }
func allocatedBytes() float64 { return harness.Metric("/gc/heap/allocs:bytes") }

func (r storeRow) print() {
	fmt.Printf("| %s | %d | %d | %.0f | %.0f | %.3g | %.0f in %.1f | %.0f in %.1f |\n", r.work.name, r.objects, r.indexes,
		r.ours.ns, r.theirs.ns, r.ratio(), r.ours.bytes, r.ours.allocs, r.theirs.bytes, r.theirs.allocs)
}

// printRange says of each work in which row it is best and in which it is worst.
func printRange(rows []storeRow) {
	fmt.Print("\n| ours / client-go | best | worst |\n|---|---|---|\n")
	say := func(r storeRow) string {
		return fmt.Sprintf("%.3g (%d objects, %d indexes)", r.ratio(), r.objects, r.indexes)
	}
	for _, w := range storeWorks {
		of := slices.DeleteFunc(slices.Clone(rows), func(r storeRow) bool { return r.work.name != w.name })
		compare := func(a, b storeRow) int { return cmp.Compare(a.ratio(), b.ratio()) }
		fmt.Printf("| %s | %s | **%s** |\n", w.name, say(slices.MinFunc(of, compare)), say(slices.MaxFunc(of, compare)))
	}
}
