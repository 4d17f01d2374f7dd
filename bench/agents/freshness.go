package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/static"
)

// every is the interval of sources that poll.
const every = time.Second

// fresh is a source, and how something changes in it.
type fresh struct {
	name  string
	input sources.Input
	touch func(what, value string)
	parts []string // that change
}

// measureFreshness is the time from a change to the update that tells it.
func measureFreshness(ctx context.Context, s harness.Settings) {
	server := harness.Start(ctx, "serve", cluster.Size{Pods: 1, Nodes: 1, PodsOnly: true})
	defer server.Stop()
	folder := manifests()
	defer os.RemoveAll(folder)
	client := harness.Must(listwatch.NewRESTClient(&rest.Config{Host: server.URL()}, corev1.SchemeGroupVersion))
	touch := func(what, value string) { server.Do(ctx, "/touch?what=%s&value=%s", what, value) }
	both := []string{"label", "status"}
	table := harness.Table{Columns: []harness.Column{
		harness.Col("of a label: median, longest ms", "%.0f, %.0f", "label longest.label"), harness.Col("of a status", "%.0f, %.0f", "status longest.status"),
	}}
	table.Begin(fmt.Sprintf("freshness (%d changes; what polls does so every %s)", 4*s.Repeat, every))
	for _, f := range []fresh{
		{"API server", sources.APIServer(client), touch, both},
		{"manifest file, inotify", sources.File(folder), func(_, value string) { writeManifest(folder, value) }, both[:1]},
		{"the kubelet's /pods, polled", sources.Kubelet(server.URL()+cluster.KubeletPath, static.WithInterval(every)), touch, both},
	} {
		harness.Within(f.name, func() { table.Row(f.measure(ctx, 4*s.Repeat), f.name) })
	}
}

// measure changes each part n times, at any time of an interval, and waits for each change.
func (f fresh) measure(ctx context.Context, n int) harness.Figures {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pods := sources.New(cluster.Node(0), silent, f.input)
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()
	defer func() {
		cancel()
		for range pods.Updates() {
		}
		<-ended
	}()
	var wanted atomic.Pointer[string]
	none := ""
	wanted.Store(&none)
	seen := make(chan time.Time)
	go func() {
		for update := range pods.Updates() {
			now, value := time.Now(), *wanted.Load()
			for _, pod := range update.Pods {
				if value != "" && (pod.Labels["v"] == value || pod.Status.Message == value) {
					wanted.Store(&none)
					seen <- now
				}
			}
		}
	}()
	<-pods.Synced()
	figures := harness.Figures{}
	for _, part := range f.parts {
		var delays []float64
		for i := range n {
			time.Sleep(every/2 + time.Duration(i*137)*time.Millisecond%every)
			value := part + strconv.Itoa(i)
			wanted.Store(&value)
			began := time.Now()
			f.touch(part, value)
			select {
			case at := <-seen:
				delays = append(delays, at.Sub(began).Seconds()*1000)
			case <-time.After(time.Minute):
				harness.Fail("a change of the %s was not told within a minute", part)
			}
		}
		figures[part], figures["longest."+part] = harness.Median(delays), slices.Max(delays)
	}
	return figures
}
