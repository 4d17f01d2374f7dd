package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/internal/self"
)

// reading is one measurement of one library, made by a process of its own.
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

// figures are its result.
type figures struct {
	Wall, CPU  float64 // seconds
	Peak, Live float64 // bytes of heap; of a relist, Peak is the growth
	Allocs     float64 // per object or event
	Bytes      float64 // allocated, per object or event
	Hits       float64 // share of the wire's bytes that were not decoded again
	Objects    int
	Bare, RSS  float64     // resident, at most: of the process before it reads, and at the end
	Rest       restFigures // of a sync; see rest.go
}

// copied is a library's copy of the collection.
type copied interface {
	run(ctx context.Context)
	version() string // of the copy
	len() int
	shared() float64
}

// measure reads, and prints the figures.
func (r reading) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	copy, err := r.open()
	if err != nil {
		return err
	}
	runtime.GC()
	bare := float64(self.Memory("VmHWM"))
	profiled := r.profile()
	first := begin()
	var running sync.WaitGroup
	running.Go(func() { copy.run(ctx) })
	defer running.Wait()
	defer cancel()
	reached := func(version string) bool { return version == world.Version(firstVersion) }
	if r.Kubeconfig != "" {
		reached = func(version string) bool { return version != "" && version != "0" }
	}
	if err := until(ctx, copy, reached); err != nil {
		return err
	}
	if r.Kubeconfig != "" {
		r.Objects = copy.len()
	}
	f, err := first.end(max(1, r.Objects)), error(nil)
	f.Bare, f.RSS = bare, float64(self.Memory("VmHWM"))
	profiled()
	switch r.What {
	case "relist":
		f, err = r.again(ctx, copy, "/change", world.Version(changedVersion), r.Objects)
	case "watch":
		f, err = r.again(ctx, copy, "/events", world.Version(eventVersion+r.Events-1), r.Events)
	}
	if err != nil {
		return err
	}
	f.Live, f.Hits, f.Objects = live(), copy.shared(), copy.len()
	if readable, ok := copy.(readable); ok && r.Reads {
		f.Rest = measureReads(readable, r.Objects)
	}
	if f.Objects != r.Objects {
		return fmt.Errorf("%s has %d objects, not %d", r.Library, f.Objects, r.Objects)
	}
	runtime.KeepAlive(copy)
	return json.NewEncoder(os.Stdout).Encode(f)
}

// again measures the work of the server's next act, from the moment at which the server begins to
// send it: how long a library waits before it lists again is its policy, not its speed.
func (r reading) again(ctx context.Context, copy copied, act, version string, per int) (figures, error) {
	before := live()
	profiled := r.profile()
	m := begin()
	if err := post(r.URL + act); err != nil {
		return figures{}, err
	}
	if err := until(ctx, copy, func(reached string) bool { return reached == version }); err != nil {
		return figures{}, err
	}
	f := m.end(per)
	profiled()
	response, err := http.Get(r.URL + "/asked")
	if err != nil {
		return figures{}, err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	asked, err := strconv.ParseInt(string(text), 10, 64)
	f.Wall = time.Since(time.Unix(0, asked)).Seconds()
	f.Peak -= before
	return f, err
}

// profile starts a CPU profile if BENCH_PROFILE asks for one; profiled ends it. So the profile is
// of what is measured: that of a relist or a watch takes the place of the first sync's.
func (r reading) profile() (profiled func()) {
	to := os.Getenv("BENCH_PROFILE")
	if to == "" {
		return func() {}
	}
	file, err := os.Create(to + "-" + r.Library + "-" + r.How)
	if err != nil || pprof.StartCPUProfile(file) != nil {
		return func() {}
	}
	return pprof.StopCPUProfile
}

func post(url string) error {
	response, err := http.Post(url, "", nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
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

// meter measures this process from begin to end.
type meter struct {
	wall   time.Time
	cpu    time.Duration
	allocs uint64
	bytes  uint64
	stop   chan struct{}
	peak   chan uint64
}

const (
	heapMetric   = "/memory/classes/heap/objects:bytes"
	allocsMetric = "/gc/heap/allocs:objects"
	bytesMetric  = "/gc/heap/allocs:bytes"
)

func begin() meter {
	m := meter{wall: time.Now(), cpu: cpu(), allocs: metric(allocsMetric), bytes: metric(bytesMetric), stop: make(chan struct{}), peak: make(chan uint64)}
	go func() {
		peak := uint64(0)
		for {
			peak = max(peak, metric(heapMetric))
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

func (m meter) end(per int) figures {
	f := figures{
		Wall: time.Since(m.wall).Seconds(), CPU: (cpu() - m.cpu).Seconds(),
		Allocs: float64(metric(allocsMetric)-m.allocs) / float64(per), Bytes: float64(metric(bytesMetric)-m.bytes) / float64(per),
	}
	close(m.stop)
	f.Peak = float64(<-m.peak)
	return f
}

// live is the heap after a collection.
func live() float64 {
	runtime.GC()
	runtime.GC()
	return float64(metric(heapMetric))
}

func metric(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// cpu is the time that this process has used, in user and kernel.
func cpu() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
