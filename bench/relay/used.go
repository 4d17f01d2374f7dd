package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/tributary-go/tributary/internal/self"
)

// used is what a process uses, and has been asked.
type used struct {
	RSS, Peak, Heap, Stacks float64 // bytes; the peak is that since it was reset
	Goroutines              float64
	CPU                     float64 // seconds, user and system
	counts
}

// since has the differences of what only grows.
func (u used) since(before used) used {
	u.CPU -= before.CPU
	u.counts = u.counts.since(before.counts)
	return u
}

// grown has all differences.
func (u used) grown(before used) used {
	u.RSS, u.Heap, u.Stacks, u.Goroutines = u.RSS-before.RSS, u.Heap-before.Heap, u.Stacks-before.Stacks, u.Goroutines-before.Goroutines
	return u.since(before)
}

// read is how a process is asked.
type asked string

const (
	asItIs    asked = "/used"
	collected asked = "/used?gc=1"   // garbage first
	resetPeak asked = "/used?peak=1" // and the peak begins again
)

func ask(ctx context.Context, control string, how asked) (u used, err error) {
	return call[used](ctx, control+string(how))
}

func call[T any](ctx context.Context, url string) (answer T, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, text)
	}
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(text, &answer)
}

// profile writes the heap of a process into a file, if that is named.
func profile(ctx context.Context, control, file string) error {
	if file == "" {
		return nil
	}
	answer, err := get(ctx, http.DefaultClient, control+"/heap", "", "")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// control serves what a process uses, beside further handlers, and returns its URL.
func control(counts func() counts, more map[string]http.HandlerFunc) (url string, err error) {
	mux := http.NewServeMux()
	mux.HandleFunc("/used", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("gc") != "" {
			for range 3 { // a collection shrinks what the one before could not
				runtime.GC()
			}
			time.Sleep(100 * time.Millisecond)
		}
		u := usedNow()
		u.counts = counts()
		if r.FormValue("peak") != "" {
			_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // else the start counts
		}
		_ = json.NewEncoder(w).Encode(u)
	})
	mux.HandleFunc("/heap", func(w http.ResponseWriter, _ *http.Request) { _ = pprof.WriteHeapProfile(w) })
	for path, handler := range more {
		mux.HandleFunc(path, handler)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = http.Serve(listener, mux) }() // until the process ends
	return "http://" + listener.Addr().String(), nil
}

func usedNow() used {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // cannot fail for the process itself
	return used{
		RSS: float64(self.Memory("VmRSS")), Peak: float64(self.Memory("VmHWM")),
		Heap: float64(samples[0].Value.Uint64()), Stacks: float64(samples[1].Value.Uint64()),
		Goroutines: float64(runtime.NumGoroutine()), CPU: time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds(),
	}
}
