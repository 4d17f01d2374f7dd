package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

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
func measureFreshness(ctx context.Context, s settings) error {
	one := s
	one.Agents, one.PerNode = 1, 110
	server, api, err := one.serve(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	folder, err := manifests()
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	client, err := listwatch.NewRESTClient(&rest.Config{Host: api}, corev1.SchemeGroupVersion)
	if err != nil {
		return err
	}
	touch := func(what string) func(string) error {
		return func(value string) error {
			_, err := post[struct{}](ctx, api+"/touch?what="+what+"&value="+value)
			return err
		}
	}
	lists, url, closeLists, err := serveLists()
	if err != nil {
		return err
	}
	defer closeLists()
	fmt.Printf("\n### freshness (%d changes; what polls does so every %s)\n\n| | of a label: median, longest ms | of a status |\n|---|---|---|\n", 4*s.Repeat, every)
	for _, f := range []fresh{
		{"API server", sources.APIServer(client), map[string]func(string) error{"label": touch("label"), "status": touch("status")}},
		{"manifest file, inotify", sources.File(folder), map[string]func(string) error{"label": func(v string) error { return writeManifest(folder, v) }}},
		{"manifest URL, polled", sources.HTTP(url, static.WithInterval(every)), map[string]func(string) error{"label": lists.label}},
		{"the kubelet's /pods, polled", sources.Kubelet(url, static.WithInterval(every)), map[string]func(string) error{"label": lists.label, "status": lists.status}},
	} {
		delays, err := f.measure(ctx, 4*s.Repeat)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		cells := ""
		for _, what := range []string{"label", "status"} {
			if all := delays[what]; all == nil {
				cells += " – |"
			} else {
				cells += fmt.Sprintf(" %.0f, %.0f |", median(all), slices.Max(all))
			}
		}
		fmt.Printf("| %s |%s\n", f.name, cells)
	}
	return nil
}

// measure changes something n times, at any time of an interval, and waits for each change.
func (f fresh) measure(ctx context.Context, n int) (map[string][]float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pods := sources.New(nodeName(0), silent, f.input)
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

// lists is a list of one pod behind a URL: of manifests, or of a kubelet.
type lists struct{ pod atomic.Pointer[corev1.Pod] }

func serveLists() (l *lists, url string, end func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", nil, err
	}
	l = &lists{}
	l.pod.Store(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", UID: "1", Labels: map[string]string{}},
		Spec:       corev1.PodSpec{NodeName: nodeName(0), Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{*l.pod.Load()}})
	})}
	go func() { _ = server.Serve(listener) }()
	return l, "http://" + listener.Addr().String() + "/pods", func() { _ = server.Close() }, nil
}

func (l *lists) label(value string) error {
	pod := l.pod.Load().DeepCopy()
	pod.Labels["v"] = value
	l.pod.Store(pod)
	return nil
}

func (l *lists) status(value string) error {
	pod := l.pod.Load().DeepCopy()
	pod.Status.Message = value
	l.pod.Store(pod)
	return nil
}
