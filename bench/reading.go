package main

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

// reading is one measurement of one library: the task of a process, and of its server.
type reading struct {
	URL string
	// Kubeconfig is of a real cluster, in place of the URL; how many objects it has is not known.
	Kubeconfig string
	Library    string
	How        string // watchlist or list
	What       string // sync, relist or watch
	Form       world.Form
	Kind       string // of a built-in object; empty: pods
	PerSet     int    // pods of each ReplicaSet
	Objects    int
	Events     int
	Cores      int  // of the reader; 0: all
	Shuffled   bool // objects come in no order
	Indexed    bool // the copy has two indexes, by namespace and node
	Reads      bool // of the copy are measured after a sync
	Handler    handling
}

// read has the figures of a meter, where the peak of a relist or watch is above what was live
// before, and those of the copy. Per is the number of objects or events.
func read(ctx context.Context, r reading) harness.Figures {
	copy := r.open()
	runtime.GC()
	bare := harness.Used()["peak"]
	first := harness.Begin(r.Library + "-" + r.How)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { copy.run(ctx) })
	defer running.Wait()
	defer cancel()
	copy.reach(ctx, func(version string) bool {
		return version == world.Version(firstVersion) || r.Kubeconfig != "" && version != "" && version != "0"
	})
	if r.Kubeconfig != "" {
		r.Objects = len(copy.keys())
	}
	f := first.End().With("", harness.Figures{"per": float64(r.Objects), "bare": bare, "rss": harness.Used()["peak"]})
	switch r.What {
	case "relist":
		f = r.again(ctx, copy, "/change", world.Version(changedVersion), r.Objects)
	case "watch":
		f = r.again(ctx, copy, "/events", world.Version(eventVersion+r.Events-1), r.Events)
	}
	f["live"], f["objects"] = harness.Live(), float64(len(copy.keys()))
	if f["shared"] = 0; copy.shared != nil {
		f["shared"] = copy.shared()
	}
	if r.Reads {
		f = f.With("", measureReads(copy))
	}
	if f["objects"] != float64(r.Objects) {
		harness.Fail("%s has %.0f objects, not %d", r.Library, f["objects"], r.Objects)
	}
	runtime.KeepAlive(copy)
	return f
}

// again measures the work of the server's next act, from the moment at which the server begins to
// send it: how long a library waits before it lists again is its policy, not its speed.
func (r reading) again(ctx context.Context, copy copied, act, version string, per int) harness.Figures {
	before := harness.Live()
	m := harness.Begin(strings.Join([]string{r.Library, r.How, r.What}, "-"))
	harness.Do(ctx, r.URL+act)
	copy.reach(ctx, func(reached string) bool { return reached == version })
	ended := time.Now()
	f := m.End()
	f["wall"] = ended.Sub(time.Unix(0, harness.Call[int64](ctx, r.URL+"/asked"))).Seconds()
	f["peak"] -= before
	f["per"] = float64(per)
	return f
}

// reach waits for the copy to reach a version.
func (c copied) reach(ctx context.Context, reached func(version string) bool) {
	for !reached(c.version()) {
		if ctx.Err() != nil {
			harness.Fail("it did not come to the end in time")
		}
		time.Sleep(time.Millisecond)
	}
}
