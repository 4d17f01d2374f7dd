package main

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"
)

// measureInitial has all watchers begin at once, each with the whole state.
func (m *loop) measureInitial(ctx context.Context) error {
	taken := make([]time.Duration, m.Watchers)
	runtime.GC()
	began, cpu := time.Now(), userTime()
	var watchers sync.WaitGroup
	for i := range m.Watchers {
		watchers.Go(func() {
			next, err := m.subject.watch(ctx, "", "0")
			for range m.Pods {
				if err == nil {
					_, err = next()
				}
			}
			if err != nil {
				m.cut.Add(1)
			}
			taken[i] = time.Since(began)
		})
	}
	watchers.Wait()
	f := figures{
		EventsPerSecond: float64(m.Pods) / time.Since(began).Seconds(), Cut: float64(m.cut.Load()),
		CPU: (userTime() - cpu).Seconds() * 1e6 / float64(m.Pods) / float64(m.Watchers), PeakMB: peak(),
	}
	slices.Sort(taken)
	f.P50, f.P99 = float64(taken[len(taken)/2])/1e3, float64(taken[len(taken)*99/100])/1e3
	return json.NewEncoder(os.Stdout).Encode(f)
}
