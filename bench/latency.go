package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/informer"
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
}

// follow has times in microseconds.
func follow(ctx context.Context, l latency) (harness.Figures, error) {
	handled := make([]int64, l.Events)
	var told atomic.Int64
	all := make(chan struct{})
	first, _ := strconv.Atoi(world.Version(eventVersion))
	run, synced, err := l.informer(func(p *corev1.Pod) {
		version, _ := strconv.Atoi(p.ResourceVersion)
		if n := version - first; n >= 0 {
			handled[n] = time.Now().UnixNano()
			if told.Add(1) == int64(l.Events) {
				close(all)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	defer running.Wait()
	defer cancel()
	if err := synced(ctx); err != nil {
		return nil, err
	}
	before := harness.CPU()
	if err := harness.Do(ctx, fmt.Sprintf("%s/pace?rate=%d&count=%d", l.URL, l.Rate, l.Events)); err != nil {
		return nil, err
	}
	select {
	case <-all:
	case <-ctx.Done():
		return nil, errors.New("not all events came in time")
	}
	used := harness.CPU() - before
	sent, err := harness.Call[[]int64](ctx, l.URL+"/sent")
	if err != nil {
		return nil, err
	}
	delays := make([]float64, len(handled))
	for n := range handled {
		delays[n] = float64(handled[n]-sent[n]) / 1e3
	}
	return harness.Figures{
		"p50": harness.Median(delays), "p99": harness.Quantile(delays, 0.99), "max": slices.Max(delays),
		"cpu": float64(used.Microseconds()) / float64(l.Events), "rate": float64(l.Events-1) / (float64(slices.Max(sent)-slices.Min(sent)) / 1e9),
	}, nil
}

// informer makes the library's informer of pods, with one handler.
func (l latency) informer(handle func(*corev1.Pod)) (run func(context.Context), synced func(context.Context) error, err error) {
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: l.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: harness.Protobuf}})
	if err != nil {
		return nil, nil, err
	}
	var i informed
	if l.Library == "tributary" {
		i = ourInformer{informer.New[*corev1.Pod](listwatch.FromClient[corev1.Pod](clients.CoreV1().RESTClient(), "pods"), informer.WithIndexes(byNode, byNamespace))}
	} else {
		source := cache.NewListWatchFromClient(clients.CoreV1().RESTClient(), "pods", "", fields.Everything())
		i = theirInformer{cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, cache.Indexers{
			"node": func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }, "namespace": cache.MetaNamespaceIndexFunc,
		})}
	}
	_, err = i.add(handle)
	return func(ctx context.Context) { _ = i.run(ctx) }, i.waitSynced, err
}

// pace sends changes as events does, each in a write of its own, at a rate, and notes when.
func (s *server) pace(r *http.Request) (any, error) {
	rate, _ := strconv.Atoi(r.URL.Query().Get("rate"))
	count, _ := strconv.Atoi(r.URL.Query().Get("count"))
	s.do <- func(on stream) {
		states := s.states(on.codec)
		random := rand.New(rand.NewPCG(1, 3))
		sent := make([]int64, count)
		began := time.Now()
		for n := range count {
			now := states[random.IntN(len(states))][n%2]
			copy(now.version, world.Version(eventVersion+n))
			on.codec.Event(on.w, watch.Modified, now.object)
			time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(rate))))
			sent[n] = time.Now().UnixNano()
			on.flush()
		}
		s.sent.Store(&sent)
	}
	return nil, nil
}

// measureLatency prints the table of latencies.
func measureLatency(ctx context.Context, s settings) error {
	s.Pods = s.EventPods
	table := harness.Table{Lead: "events/s | ", Columns: []harness.Column{
		harness.Col("p50 us", "%.0f", "p50"), harness.Col("p99 us", "%.0f", "p99"), harness.Col("longest us", "%.0f", "max"), harness.Col("CPU us/event", "%.1f", "cpu"),
	}}
	table.Begin("latency", fmt.Sprintf("From the last byte of an event, in protobuf, to the handler of an informer of %d pods with two indexes; "+
		"each event is a write of its own. %s.", s.EventPods, s.repetitions()))
	libraries := []string{"tributary", "client-go"}
	return s.withServer(ctx, func(url string) error {
		if err := harness.Do(ctx, url+"/reset?form="+string(world.Protobuf)); err != nil {
			return err
		}
		for _, rate := range []int{1_000, 20_000} {
			medians, err := harness.ByTurns(s.Repeat, libraries, func(library string) (harness.Figures, error) {
				return harness.Measure(ctx, "latency", latency{URL: url, Library: library, Rate: rate, Events: min(s.Events, 5*rate)})
			})
			if err != nil {
				return err
			}
			for i, f := range medians {
				table.Row(f, fmt.Sprintf("%.0f", f["rate"]), libraries[i])
			}
			table.Ratio(medians[0], medians[1], rate, "**ours / client-go's**")
		}
		return nil
	})
}
