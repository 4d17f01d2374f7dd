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
	"os"
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

func measure(ctx context.Context, s harness.Settings) error {
	part := 1
	if s.Quick {
		part = 200
	}
	var parts []harness.Part
	for _, k := range kinds {
		k.objects, k.changes = k.objects/part, k.changes/part
		parts = append(parts, harness.Part{Name: k.name, Measure: k.measure})
	}
	return s.Each(ctx, parts...)
}

// measure fills an etcd, and prints a table of first syncs and one of watches.
func (k kind) measure(ctx context.Context, s harness.Settings) error {
	origin, err := startEtcd(ctx)
	if err != nil {
		return err
	}
	defer origin.close()
	size, err := origin.fill(ctx, k, k.objects)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s, %d of %.1f KB", k.name, k.objects, float64(size)/float64(k.objects)/1e3)
	j := job{Kind: k.name, Endpoint: origin.endpoint, Objects: k.objects}
	if err := table(s, "first sync: "+name, "objects/s", func(reader string) (harness.Figures, error) {
		j.Reader = reader
		return harness.Measure(ctx, "read", j)
	}); err != nil {
		return err
	}
	j.Changes = k.changes
	return table(s, fmt.Sprintf("watch: %d changes of %s", k.changes, name), "events/s", func(reader string) (harness.Figures, error) {
		j.Reader = reader
		return origin.whileStopped(ctx, j, k)
	})
}

// table measures all readers by turns, and prints the medians.
func table(s harness.Settings, title, rate string, measure func(reader string) (harness.Figures, error)) error {
	medians, err := harness.ByTurns(s.Repeat, readers, measure)
	if err != nil {
		return err
	}
	table := harness.Table{Columns: []harness.Column{
		harness.Col("wall s", "%.2f", "wall"), harness.Col(rate, "%.0f", "per/wall"), harness.Col("CPU s", "%.2f", "cpu"),
		harness.Col("allocated MB", "%.0f", "bytes/1e6"), harness.Col("allocations/object", "%.1f", "allocs/per"), harness.Col("peak MB", "%.0f", "rss/1e6"),
	}}
	table.Begin(title)
	for i, f := range medians {
		table.Row(f, readers[i])
	}
	table.Ratio(medians[2], medians[1], "**ours / API server**")
	return nil
}

// whileStopped starts a reader, stops it while all changes are written, and lets it go on.
func (o *origin) whileStopped(ctx context.Context, j job, k kind) (f harness.Figures, err error) {
	p, err := harness.Start(ctx, "read", j)
	if err != nil {
		return nil, err
	}
	defer p.Stop()
	defer func() { _ = p.Signal(syscall.SIGKILL) }() // it may be stopped
	// The first change is there so that the watch of each reader lives.
	for i, n := range []int{1, j.Changes} {
		if i > 0 {
			if _, err := p.Line(); err != nil {
				return nil, err
			}
		}
		if err := stop(p.Process); err != nil {
			return nil, err
		}
		revision, err := o.change(ctx, k, j.Objects, n)
		if err == nil {
			err = p.Tell(revision, time.Now().UnixNano())
		}
		if err == nil {
			err = p.Signal(syscall.SIGCONT)
		}
		if err != nil {
			return nil, err
		}
	}
	line, err := p.Line()
	if err != nil {
		return nil, err
	}
	return f, json.Unmarshal([]byte(line), &f)
}

// stop returns when all threads of a process stand still.
func stop(p *self.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	_, err := syscall.Wait4(p.ID(), nil, syscall.WUNTRACED, nil)
	return err
}

// read does a job in this process, and prints its figures.
func read(ctx context.Context, j job) error {
	at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == j.Kind })
	if at < 0 {
		return fmt.Errorf("no kind is named %s", j.Kind)
	}
	if j.Changes == 0 {
		return metered(j, j.Objects, func() (began time.Time, err error) {
			began = time.Now()
			reader, err := newReader(kinds[at], j)
			if err == nil {
				err = reader.sync(ctx)
			}
			return began, err
		})
	}
	reader, err := newReader(kinds[at], j)
	if err != nil {
		return err
	}
	if err := reader.sync(ctx); err != nil {
		return err
	}
	// follow says that all has come, is stopped, goes on, and returns once the changes since then
	// have come. Others of this process run before it does, so that the clock is the parent's.
	follow := func() (went time.Time, err error) {
		fmt.Println("ready")
		var revision, at int64
		if _, err := fmt.Scanln(&revision, &at); err != nil {
			return went, err
		}
		return time.Unix(0, at), reader.reach(ctx, revision)
	}
	if _, err := follow(); err != nil {
		return err
	}
	return metered(j, j.Changes, follow)
}

// metered measures do, which returns when it began, and prints the figures of n objects.
func metered(j job, n int, do func() (began time.Time, err error)) error {
	m := harness.Begin(j.Reader)
	began, err := do()
	if err != nil {
		return err
	}
	wall := time.Since(began).Seconds()
	f := m.End()
	f["wall"], f["per"], f["rss"] = wall, float64(n), float64(self.Memory("VmHWM"))
	return json.NewEncoder(os.Stdout).Encode(f)
}
