package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

// reading is one measurement of one library: the task of a process.
type reading struct {
	URL string
	// Kubeconfig is of a real cluster, in place of the URL; how many objects it has is not known.
	Kubeconfig string
	Library    string // tributary, tributary-plain, packed, reflector or informer
	Form       world.Form
	Kind       string // of a built-in object
	How        string // watchlist or list
	What       string // sync, relist or watch
	Objects    int
	Events     int
	Cores      int // 0: all
	Indexed    bool
	Reads      bool // of the copy are measured after a sync
	Handler    handling
}

// copied is a library's copy of the collection.
type copied interface {
	run(ctx context.Context)
	version() string // of the copy
	len() int
	shared() float64 // of the wire's bytes, which were not decoded again
}

// read has the figures of a harness.Meter, where the peak of a relist or watch is above what was
// live before, and those of the copy. Per is the number of objects or events.
func read(ctx context.Context, r reading) (harness.Figures, error) {
	copy, err := r.open()
	if err != nil {
		return nil, err
	}
	runtime.GC()
	bare := harness.Used()["peak"]
	first := harness.Begin(r.Library + "-" + r.How)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { copy.run(ctx) })
	defer running.Wait()
	defer cancel()
	reached := func(version string) bool { return version == world.Version(firstVersion) }
	if r.Kubeconfig != "" {
		reached = func(version string) bool { return version != "" && version != "0" }
	}
	if err := until(ctx, copy, reached); err != nil {
		return nil, err
	}
	if r.Kubeconfig != "" {
		r.Objects = copy.len()
	}
	f := first.End().With("", harness.Figures{"per": float64(r.Objects), "bare": bare, "rss": harness.Used()["peak"]})
	switch r.What {
	case "relist":
		f, err = r.again(ctx, copy, "/change", world.Version(changedVersion), r.Objects)
	case "watch":
		f, err = r.again(ctx, copy, "/events", world.Version(eventVersion+r.Events-1), r.Events)
	}
	if err != nil {
		return nil, err
	}
	f["live"], f["shared"], f["objects"] = harness.Live(), copy.shared(), float64(copy.len())
	if readable, ok := copy.(readable); ok && r.Reads {
		f = f.With("", measureReads(readable, r.Objects))
	}
	if copy.len() != r.Objects {
		return nil, fmt.Errorf("%s has %d objects, not %d", r.Library, copy.len(), r.Objects)
	}
	runtime.KeepAlive(copy)
	return f, nil
}

// again measures the work of the server's next act, from the moment at which the server begins to
// send it: how long a library waits before it lists again is its policy, not its speed.
func (r reading) again(ctx context.Context, copy copied, act, version string, per int) (harness.Figures, error) {
	before := harness.Live()
	m := harness.Begin(strings.Join([]string{r.Library, r.How, r.What}, "-"))
	if err := harness.Do(ctx, r.URL+act); err != nil {
		return nil, err
	}
	if err := until(ctx, copy, func(reached string) bool { return reached == version }); err != nil {
		return nil, err
	}
	ended := time.Now()
	f := m.End()
	asked, err := harness.Call[int64](ctx, r.URL+"/asked")
	f["wall"] = ended.Sub(time.Unix(0, asked)).Seconds()
	f["peak"] -= before
	f["per"] = float64(per)
	return f, err
}

// until waits for the copy to reach a version.
func until(ctx context.Context, copy copied, reached func(version string) bool) error {
	for !reached(copy.version()) {
		select {
		case <-ctx.Done():
			return errors.New("it did not come to the end in time")
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}
