package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/listwatch"
)

// latency is how long an event takes from the server's last byte to the handler of an informer with
// two indexes, at a rate of events. The server and the library are processes of one machine, with
// one clock.
type latency struct {
	URL     string
	Library string // tributary or client-go
	Rate    int    // events per second
	Events  int
	Beside  bool // a neighbour in the process that allocates
}

// follow has times in microseconds.
func follow(ctx context.Context, l latency) harness.Figures {
	handled := make([]int64, l.Events)
	var told atomic.Int64
	all := make(chan struct{})
	first := harness.Must(strconv.Atoi(world.Version(eventVersion)))
	i := l.informer()
	i.add(func(p *corev1.Pod) {
		version, _ := strconv.Atoi(p.ResourceVersion)
		if n := version - first; n >= 0 {
			handled[n] = time.Now().UnixNano()
			if told.Add(1) == int64(l.Events) {
				close(all)
			}
		}
	})
	defer i.start(ctx)()
	if l.Beside {
		go allocate(ctx)
	}
	before := harness.CPU()
	sent := harness.Call[[]int64](ctx, fmt.Sprintf("%s/pace?rate=%d&count=%d", l.URL, l.Rate, l.Events))
	select {
	case <-all:
	case <-ctx.Done():
		harness.Fail("not all events came in time")
	}
	used := harness.CPU() - before
	delays := make([]float64, len(handled))
	for n := range handled {
		delays[n] = float64(handled[n]-sent[n]) / 1e3
	}
	return harness.Figures{
		"p50": harness.Median(delays), "p99": harness.Quantile(delays, 0.99), "max": slices.Max(delays),
		"cpu": float64(used.Microseconds()) / float64(l.Events), "rate": float64(l.Events-1) / (float64(slices.Max(sent)-slices.Min(sent)) / 1e9),
	}
}

// allocate makes 100 MB of garbage a second, over a heap of 400 MB that each collection marks.
func allocate(ctx context.Context) {
	type block struct {
		first *block // for the collection to follow
		_     [1 << 10]byte
	}
	heap := make([]*block, 400_000)
	for i, turn := 0, time.Tick(10*time.Millisecond); ctx.Err() == nil; i++ {
		heap[i%len(heap)] = &block{first: heap[0]}
		if i > len(heap) && i%1000 == 0 {
			<-turn
		}
	}
}

// informer makes the library's informer of pods.
func (l latency) informer() informed {
	config := &rest.Config{Host: l.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: harness.Protobuf}}
	client := harness.Must(kubernetes.NewForConfig(config)).CoreV1().RESTClient()
	if l.Library == ours {
		return ourInformer(listwatch.FromClient[corev1.Pod](client, "pods"), ourIndexes...)
	}
	return theirInformer(cache.NewListWatchFromClient(client, "pods", "", fields.Everything()), theirIndexes(2))
}

// measureLatency prints the table of latencies.
func measureLatency(ctx context.Context, s settings) {
	table := harness.Table{Lead: "events/s | ", Columns: []harness.Column{
		harness.Col("p50 us", "%.0f", "p50"), harness.Col("p99 us", "%.0f", "p99"), harness.Col("longest us", "%.0f", "max"), harness.Col("CPU us/event", "%.1f", "cpu"),
	}}
	table.Begin("latency", fmt.Sprintf("From the last byte of an event, in protobuf, to the handler of an informer of %d pods with two indexes; "+
		"each event is a write of its own. %s.", s.EventPods, s.repetitions()))
	libraries := []string{ours, clientGo}
	server := harness.Start(ctx, "serve", s.reading("watch", world.Protobuf))
	defer server.Stop()
	server.Do(ctx, "/reset")
	// The last row ends before the first probe, which this server does not answer.
	for _, l := range []latency{{Rate: 1_000, Events: 5_000}, {Rate: 20_000, Events: 100_000}, {Rate: 20, Events: 800, Beside: true}} {
		l.URL, l.Events = server.URL(), min(s.Events, l.Events)
		medians := harness.ByTurns(s.Repeat, libraries, func(library string) harness.Figures {
			l.Library = library
			return harness.Measure(ctx, "latency", l)
		})
		lead := fmt.Sprint(l.Rate)
		if l.Beside {
			lead += ", beside a neighbour that allocates"
		}
		for i, f := range medians {
			table.Row(f, lead, libraries[i])
		}
		table.Ratio(medians[0], medians[1], lead, "**ours / client-go's**")
	}
}
