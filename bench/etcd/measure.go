package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"

	"github.com/tributary-go/tributary/internal/self"
)

// figures are the outcome of one measurement.
type figures struct {
	Wall        float64 // seconds
	Rate        float64 // objects, or events, a second
	CPU         float64 // seconds of user and system time
	AllocatedMB float64
	Allocations float64 // per object, or event
	PeakMB      float64 // resident
}

// measure does a job in this process, and prints its figures.
func measure(ctx context.Context, j job) error {
	at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == j.Kind })
	if at < 0 {
		return fmt.Errorf("no kind is named %s", j.Kind)
	}
	if j.Changes == 0 {
		return meter(j.Objects, j.Profile, func() (began time.Time, err error) {
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
		fmt.Print(readyLine)
		var revision, at int64
		if _, err := fmt.Scanln(&revision, &at); err != nil {
			return went, err
		}
		return time.Unix(0, at), reader.reach(ctx, revision)
	}
	if _, err := follow(); err != nil {
		return err
	}
	return meter(j.Changes, j.Profile, follow)
}

// meter measures do, which returns when it began, and prints the figures.
func meter(n int, profile string, do func() (began time.Time, err error)) error {
	if profile != "" {
		file, err := os.Create(profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	bytes, count := allocated()
	cpu := cpuTime()
	began, err := do()
	if err != nil {
		return err
	}
	wall := time.Since(began).Seconds()
	f := figures{Wall: wall, Rate: float64(n) / wall, CPU: (cpuTime() - cpu).Seconds(), PeakMB: float64(self.Memory("VmHWM")) / 1e6}
	bytesNow, countNow := allocated()
	f.AllocatedMB, f.Allocations = float64(bytesNow-bytes)/1e6, float64(countNow-count)/float64(n)
	return json.NewEncoder(os.Stdout).Encode(f)
}

// allocated is what this process has allocated so far.
func allocated() (bytes, count uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/allocs:objects"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64()
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // has no error for this process
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// median takes each figure's own.
func median(runs []figures) (f figures) {
	for _, figure := range []func(*figures) *float64{
		func(f *figures) *float64 { return &f.Wall }, func(f *figures) *float64 { return &f.Rate },
		func(f *figures) *float64 { return &f.CPU }, func(f *figures) *float64 { return &f.AllocatedMB },
		func(f *figures) *float64 { return &f.Allocations }, func(f *figures) *float64 { return &f.PeakMB },
	} {
		slices.SortFunc(runs, func(a, b figures) int { return cmp.Compare(*figure(&a), *figure(&b)) })
		*figure(&f) = *figure(&runs[len(runs)/2])
	}
	return f
}
