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
	touch map[string]func(value string) error // by the part that changes
}

// measureFreshness is the time from a change to the update that tells it.
func measureFreshness(ctx context.Context, s harness.Settings) error {
	server, err := serve(ctx, cluster.Size{Pods: 1, Nodes: 1, PodsOnly: true})
	if err != nil {
		return err
	}
	defer server.Stop()
	folder, err := manifests()
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	client, err := listwatch.NewRESTClient(&rest.Config{Host: server.URL()}, corev1.SchemeGroupVersion)
	if err != nil {
		return err
	}
	touch := func(what string) func(string) error {
		return func(value string) error {
			return harness.Do(ctx, server.Words[1]+"/touch?what="+what+"&value="+value)
		}
	}
	table := harness.Table{Columns: []harness.Column{
		harness.Col("of a label: median, longest ms", "%.0f, %.0f", "label longest.label"), harness.Col("of a status", "%.0f, %.0f", "status longest.status"),
	}}
	table.Begin(fmt.Sprintf("freshness (%d changes; what polls does so every %s)", 4*s.Repeat, every))
	for _, f := range []fresh{
		{"API server", sources.APIServer(client), map[string]func(string) error{"label": touch("label"), "status": touch("status")}},
		{"manifest file, inotify", sources.File(folder), map[string]func(string) error{"label": func(v string) error { return writeManifest(folder, v) }}},
		{"the kubelet's /pods, polled", sources.Kubelet(server.URL()+cluster.KubeletPath, static.WithInterval(every)), map[string]func(string) error{"label": touch("label"), "status": touch("status")}},
	} {
		delays, err := f.measure(ctx, 4*s.Repeat)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		figures := harness.Figures{}
		for what, all := range delays {
			figures[what], figures["longest."+what] = harness.Median(all), slices.Max(all)
		}
		table.Row(figures, f.name)
	}
	return nil
}

// measure changes something n times, at any time of an interval, and waits for each change.
func (f fresh) measure(ctx context.Context, n int) (map[string][]float64, error) {
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
	delays := map[string][]float64{}
	for what, touch := range f.touch {
		for i := range n {
			time.Sleep(every/2 + time.Duration(i*137)*time.Millisecond%every)
			value := what + strconv.Itoa(i)
			wanted.Store(&value)
			began := time.Now()
			if err := touch(value); err != nil {
				return nil, err
			}
			select {
			case at := <-seen:
				delays[what] = append(delays[what], at.Sub(began).Seconds()*1000)
			case <-time.After(time.Minute):
				return nil, fmt.Errorf("a change of the %s was not told within a minute", what)
			}
		}
	}
	return delays, nil
}
