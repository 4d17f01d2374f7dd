// The command etcd measures how this project reads an etcd beside how an API server does, with the
// storage and the cacher of k8s.io/apiserver, and prints a table.
//
//	go run -C bench ./etcd           # 100,000 pods, and three other kinds
//	go run -C bench ./etcd -quick    # small, for CI: every row once
//	BENCH_PROFILE=/tmp/p go run -C bench ./etcd -only pods
//
// One etcd of one member lives in the process that prints. Each figure comes from a fresh process
// that connects to it over loopback, by turns with the others; the table has medians. A first sync
// is from the start to the whole state in the cache. A watch begins when a reader that was stopped
// while all changes were written goes on, and ends when the last change is in the cache. The floor
// is etcd's own client, which receives the same bytes and looks at none of them. The goals are in
// docs/makers/benchmarks.md.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/internal/self"
)

// job is the task of one process.
type job struct {
	Reader   string
	Kind     string
	Endpoint string
	Objects  int
	Changes  int // to be received in a watch; zero: a first sync
}

// readers are measured by turns.
var readers = []string{floor, apiServer, tributary}

const (
	floor     = "floor: the bytes"
	apiServer = "API server"
	tributary = "ours"
)

func main() { harness.Main(3, harness.Roles{"read": harness.Acts(read)}, measure) }

func measure(ctx context.Context, s harness.Settings) {
	part := 1
	if s.Quick {
		part = 200
	}
	var parts []harness.Part
	for _, k := range kinds {
		k.objects /= part
		parts = append(parts, harness.Part{Name: k.name, Measure: k.measure})
	}
	s.Each(ctx, parts...)
}

// measure fills an etcd, and prints a table of first syncs and one of watches.
func (k kind) measure(ctx context.Context, s harness.Settings) {
	origin := startEtcd(ctx)
	defer origin.close()
	size := origin.fill(ctx, k)
	name := fmt.Sprintf("%s, %d of %.1f KB", k.name, k.objects, float64(size)/float64(k.objects)/1e3)
	j := job{Kind: k.name, Endpoint: origin.endpoint, Objects: k.objects}
	table(s, "first sync: "+name, "objects/s", func(reader string) harness.Figures {
		j.Reader = reader
		return harness.Measure(ctx, "read", j)
	})
	j.Changes = k.objects / changesPer
	table(s, fmt.Sprintf("watch: %d changes of %s", j.Changes, name), "events/s", func(reader string) harness.Figures {
		j.Reader = reader
		return origin.whileStopped(ctx, j, k)
	})
}

// table measures all readers by turns, and prints the medians.
func table(s harness.Settings, title, rate string, measure func(reader string) harness.Figures) {
	medians := harness.ByTurns(s.Repeat, readers, measure)
	table := harness.Table{Columns: []harness.Column{
		harness.Col("wall s", "%.2f", "wall"), harness.Col(rate, "%.0f", "per/wall"), harness.Col("CPU s", "%.2f", "cpu"),
		harness.Col("allocated MB", "%.0f", "bytes/1e6"), harness.Col("allocations/object", "%.1f", "allocs/per"), harness.Col("peak MB", "%.0f", "rss/1e6"),
	}}
	table.Begin(title)
	harness.Rows(table, readers, medians)
	table.Ratio(medians[2], medians[1], "**ours / API server**")
}

// whileStopped starts a reader, stops it while all changes are written, and lets it go on.
func (o *origin) whileStopped(ctx context.Context, j job, k kind) (f harness.Figures) {
	p := harness.Start(ctx, "read", j)
	defer p.Stop()
	defer func() { _ = p.Signal(syscall.SIGKILL) }() // it may be stopped
	// The first change is there so that the watch of each reader lives.
	for i, n := range []int{1, j.Changes} {
		if i > 0 {
			harness.Must(p.Line())
		}
		stop(p)
		revision := o.change(ctx, k, n)
		harness.Check(p.Tell(revision, time.Now().UnixNano()))
		harness.Check(p.Signal(syscall.SIGCONT))
	}
	harness.Check(json.Unmarshal([]byte(harness.Must(p.Line())), &f))
	return f
}

// stop returns when all threads of a process stand still.
func stop(p harness.Process) {
	harness.Check(p.Signal(syscall.SIGSTOP))
	harness.Must(syscall.Wait4(p.ID(), nil, syscall.WUNTRACED, nil))
}

// read does a job in this process, and prints its figures.
func read(ctx context.Context, j job) {
	at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == j.Kind })
	if j.Changes == 0 {
		metered(j, j.Objects, func() (began time.Time) {
			began = time.Now()
			newReader(kinds[at], j).sync(ctx)
			return began
		})
		return
	}
	reader := newReader(kinds[at], j)
	reader.sync(ctx)
	// follow says that all has come, is stopped, goes on, and returns once the changes since then
	// have come. Others of this process run before it does, so that the clock is the parent's.
	follow := func() (went time.Time) {
		fmt.Println("ready")
		var revision, at int64
		harness.Must(fmt.Scanln(&revision, &at))
		reader.reach(ctx, revision)
		return time.Unix(0, at)
	}
	follow()
	metered(j, j.Changes, follow)
}

// metered measures do, which returns when it began, and prints the figures of n objects.
func metered(j job, n int, do func() (began time.Time)) {
	m := harness.Begin(j.Reader)
	wall := time.Since(do()).Seconds()
	f := m.End()
	f["wall"], f["per"], f["rss"] = wall, float64(n), float64(self.Memory("VmHWM"))
	f.Say()
}
