package harness

import (
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/tributary-go/tributary/internal/self"
)

// Meter measures this process.
type Meter struct {
	began      time.Time
	before     Figures
	stop       chan struct{}
	peak       chan float64
	unprofiled func()
}

// Begin begins a measurement, and its [Profile].
func Begin(subject string) *Meter {
	m := &Meter{stop: make(chan struct{}), peak: make(chan float64), unprofiled: Profile(subject)}
	m.began, m.before = time.Now(), spent()
	go func() {
		peak := 0.0
		for {
			peak = max(peak, Heap())
			select {
			case <-m.stop:
				m.peak <- peak
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return m
}

// End has seconds of wall, cpu, user and system, the objects and bytes that were allocated (allocs,
// bytes), and the peak of the heap in bytes.
func (m *Meter) End() Figures {
	f := spent().Since(m.before)
	f["wall"] = time.Since(m.began).Seconds()
	close(m.stop)
	f["peak"] = <-m.peak
	m.unprofiled()
	return f
}

// Profile begins a CPU profile if BENCH_PROFILE has the beginning of its path, which ends with the
// subject's name.
func Profile(subject string) (stop func()) {
	path := os.Getenv("BENCH_PROFILE")
	if path == "" {
		return func() {}
	}
	file, err := os.Create(path + "-" + subject)
	if err != nil || pprof.StartCPUProfile(file) != nil {
		return func() {}
	}
	return pprof.StopCPUProfile
}

// spent is what this process has used so far.
func spent() Figures {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for the process itself
	f := Figures{
		"user": time.Duration(u.Utime.Nano()).Seconds(), "system": time.Duration(u.Stime.Nano()).Seconds(),
		"allocs": Metric("/gc/heap/allocs:objects"), "bytes": Metric("/gc/heap/allocs:bytes"),
		"switches": float64(u.Nvcsw + u.Nivcsw), // of threads
	}
	f["cpu"] = f["user"] + f["system"]
	return f
}

// CPU is the user and system time of this process.
func CPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Metric is a number of the runtime.
func Metric(name string) float64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}

// Heap is the bytes of objects, dead ones included.
func Heap() float64 { return Metric("/memory/classes/heap/objects:bytes") }

// Live is the heap after a collection.
func Live() float64 {
	Collect()
	return Heap()
}

// Collect collects garbage. A collection shrinks stacks by half, and frees what waited for another.
func Collect() {
	for range 3 {
		runtime.GC()
	}
}

// Used is what this process uses: bytes of rss, its peak (the largest since the start, or since it
// was reset), heap and stacks, goroutines, and seconds of cpu, user and system.
func Used() Figures {
	// Before there is garbage of ours.
	heap, stacks := Heap(), Metric("/memory/classes/heap/stacks:bytes")
	f := spent()
	f["heap"], f["stacks"], f["goroutines"] = heap, stacks, float64(runtime.NumGoroutine())
	f["rss"], f["peak"] = float64(self.Memory("VmRSS")), float64(self.Memory("VmHWM"))
	return f
}

// How a process is asked what it uses, behind the address of its [Control].
const (
	AsItIs    = "/used"
	Collected = "/used?gc=1"               // garbage first
	ResetPeak = "/used?peak=1"             // and the peak begins again
	Returned  = "/used?gc=1&free=1&peak=1" // garbage first, and its memory is the system's again
)

// Control is a mux that answers what this process uses, with the counts, which may be nil, and has
// it act.
func Control(counts func() Figures, acts map[string]func(*http.Request) any) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/used", answer(func(r *http.Request) any { return used(r, counts) }))
	for path, act := range acts {
		mux.HandleFunc(path, answer(act))
	}
	return mux
}

func used(r *http.Request, counts func() Figures) Figures {
	if r.FormValue("gc") != "" {
		Collect()
		time.Sleep(100 * time.Millisecond)
	}
	if r.FormValue("free") != "" {
		debug.FreeOSMemory()
	}
	f := Used()
	if counts != nil {
		f = f.With("", counts())
	}
	if r.FormValue("peak") != "" {
		_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // else the start counts
	}
	return f
}
