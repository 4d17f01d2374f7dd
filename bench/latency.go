package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
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
	Pods    int
	Rate    int // events per second
	Events  int
}

// measure prints a map of figures by name: times in microseconds.
func (l latency) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
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
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	defer running.Wait()
	defer cancel()
	if err := synced(ctx); err != nil {
		return err
	}
	before := cpu()
	if err := post(fmt.Sprintf("%s/pace?rate=%d&count=%d", l.URL, l.Rate, l.Events)); err != nil {
		return err
	}
	select {
	case <-all:
	case <-ctx.Done():
		return errors.New("not all events came in time")
	}
	used := cpu() - before
	response, err := http.Get(l.URL + "/sent")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var sent []int64
	if err := json.NewDecoder(response.Body).Decode(&sent); err != nil {
		return err
	}
	for n := range handled {
		handled[n] -= sent[n]
	}
	slices.Sort(handled)
	at := func(share float64) float64 { return float64(handled[int(share*float64(l.Events-1))]) / 1e3 }
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"p50": at(0.5), "p99": at(0.99), "max": at(1), "cpu": float64(used.Microseconds()) / float64(l.Events),
		"rate": float64(l.Events-1) / (float64(slices.Max(sent)-slices.Min(sent)) / 1e9),
	})
}

// informer makes the library's informer of pods, with one handler.
func (l latency) informer(handle func(*corev1.Pod)) (run func(context.Context), synced func(context.Context) error, err error) {
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: l.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: world.Protobuf.ContentType()}})
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
func (s *server) pace(_ http.ResponseWriter, r *http.Request) {
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
}

// measureLatency prints the table of latencies.
func measureLatency(ctx context.Context, s settings) error {
	fmt.Printf("\n### latency\n\nFrom the last byte of an event, in world.Protobuf, to the handler of an informer of %d pods with two indexes; "+
		"each event is a write of its own. %s.\n\n"+
		"| events/s | | p50 us | p99 us | longest us | CPU us/event |\n|---|---|---|---|---|---|\n", s.eventPods, s.repetitions())
	for _, rate := range []int{1_000, 20_000} {
		medians, err := s.latencies(ctx, rate)
		if err != nil {
			return fmt.Errorf("latency: %w", err)
		}
		for i, library := range []string{"tributary", "client-go"} {
			m := medians[i]
			fmt.Printf("| %.0f | %s | %.0f | %.0f | %.0f | %.1f |\n", m["rate"], library, m["p50"], m["p99"], m["max"], m["cpu"])
		}
		a, b := medians[0], medians[1]
		fmt.Printf("| %d | **ours / client-go's** | **%.2f** | **%.2f** | %.2f | **%.2f** |\n", rate, a["p50"]/b["p50"], a["p99"]/b["p99"], a["max"]/b["max"], a["cpu"]/b["cpu"])
	}
	return nil
}

// latencies are the medians of both libraries, by turns.
func (s settings) latencies(ctx context.Context, rate int) (medians [2]map[string]float64, err error) {
	s.pods = s.eventPods
	var all [2][]map[string]float64
	err = s.withServer(ctx, func(ctx context.Context, url string) error {
		if err := post(url + "/reset?form=" + string(world.Protobuf)); err != nil {
			return err
		}
		for range s.repeat {
			for i, library := range []string{"tributary", "client-go"} {
				what, err := json.Marshal(latency{URL: url, Library: library, Pods: s.pods, Rate: rate, Events: min(s.events, 5*rate)})
				if err != nil {
					return err
				}
				cmd, err := s.start(ctx, "latency", string(what))
				if err != nil {
					return err
				}
				f := map[string]float64{}
				if err := output(cmd, &f); err != nil {
					return err
				}
				all[i] = append(all[i], f)
			}
		}
		return nil
	})
	if err != nil {
		return medians, err
	}
	for i, of := range all {
		medians[i] = map[string]float64{}
		for name := range of[0] {
			medians[i][name] = median(of, func(f map[string]float64) float64 { return f[name] })
		}
	}
	return medians, nil
}
