package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/internal/self"
)

var ofWidgets = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// measure fills a cache, reads it, and prints a result.
func (m measurement) measure(ctx context.Context) error {
	log.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	c, err := m.newCache()
	if err != nil {
		return err
	}
	obj := m.object()
	if err := c.IndexField(ctx, obj, "node", nodeOf); err != nil {
		return err
	}
	runtime.GC()
	var r result
	peak := watchHeap(ctx)
	before := cpu()
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		return errors.New("the cache has not synced")
	}
	r.CPU = (cpu() - before).Seconds()
	r.Peak = float64(peak()) / 1e6
	runtime.GC()
	runtime.GC()
	r.Live = float64(heap()) / 1e6
	r.PeakRSS = float64(self.Memory("VmHWM")) / 1e6
	debug.FreeOSMemory()
	r.RSS = float64(self.Memory("VmRSS")) / 1e6
	if r.Objects, r.Reads, err = m.reads(ctx, c); err != nil {
		return err
	}
	r.ReadingRSS = float64(self.Memory("VmHWM")) / 1e6
	runtime.KeepAlive(c)
	return json.NewEncoder(os.Stdout).Encode(r)
}

func (m measurement) newCache() (cache.Cache, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(ofWidgets, meta.RESTScopeNamespace)
	options := cache.Options{Mapper: mapper}
	switch {
	case m.Trim:
		options.DefaultTransform = trim
	case !m.Keep:
		options.DefaultTransform = cache.TransformStripManagedFields()
	}
	config := &rest.Config{Host: m.URL, QPS: -1}
	if m.Kubeconfig != "" {
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", m.Kubeconfig); err != nil {
			return nil, err
		}
		config.QPS = -1
	}
	if m.Library == "tributary" {
		return controllerruntime.NewCache(config, options)
	}
	return cache.New(config, options)
}

// trim keeps what a controller reads that starts pods and follows their states, such as a workflow
// engine: metadata, node, names of containers, and the status.
func trim(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	spec := corev1.PodSpec{NodeName: pod.Spec.NodeName, Containers: make([]corev1.Container, len(pod.Spec.Containers))}
	for i := range spec.Containers {
		spec.Containers[i].Name = pod.Spec.Containers[i].Name
	}
	pod.Spec, pod.ManagedFields = spec, nil
	return pod, nil
}

func (m measurement) object() client.Object {
	if m.Form == "pods" {
		return &corev1.Pod{}
	}
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(ofWidgets)
	return widget
}

func (m measurement) list() client.ObjectList {
	if m.Form == "pods" {
		return &corev1.PodList{}
	}
	widgets := &unstructured.UnstructuredList{}
	widgets.SetGroupVersionKind(ofWidgets.GroupVersion().WithKind("WidgetList"))
	return widgets
}

// nodeOf is what objects are indexed by: pods by their node, widgets by their app, which forty
// share.
func nodeOf(obj client.Object) []string {
	if pod, ok := obj.(*corev1.Pod); ok {
		return []string{pod.Spec.NodeName}
	}
	return []string{obj.GetName()[:min(len(obj.GetName()), len("service-00000"))]}
}

const (
	getCopy     = "Get"
	getShared   = "Get, not copied"
	getReused   = "Get, not copied, into an object of before"
	indexCopy   = "List by index"
	indexShared = "List by index, not copied"
	labelNone   = "List by a label that nothing has"
	allShared   = "List of all, not copied"
	allCopy     = "List of all"
)

var readNames = []string{getCopy, getShared, getReused, indexCopy, indexShared, labelNone, allShared, allCopy}

// reads times each kind of read for a while, and counts the objects.
func (m measurement) reads(ctx context.Context, c client.Reader) (objects int, figures map[string]float64, err error) {
	all := m.list()
	if err := c.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return 0, nil, err
	}
	items, err := meta.ExtractList(all)
	if err != nil {
		return 0, nil, err
	}
	objects = len(items)
	if objects == 0 || m.Kubeconfig == "" && objects != m.Objects {
		return 0, nil, fmt.Errorf("the cache has %d objects, not %d", objects, m.Objects)
	}
	random := rand.New(rand.NewPCG(1, 2))
	keys, nodes := make([]client.ObjectKey, 1000), make([]string, 1000)
	for i := range keys {
		obj := items[random.IntN(len(items))].(client.Object)
		keys[i], nodes[i] = client.ObjectKeyFromObject(obj), nodeOf(obj)[0]
	}
	items, all = nil, nil
	reused := m.object()
	runtime.GC()
	reads := map[string]func(i int) error{
		getCopy:   func(i int) error { return c.Get(ctx, keys[i%1000], m.object()) },
		getShared: func(i int) error { return c.Get(ctx, keys[i%1000], m.object(), client.UnsafeDisableDeepCopy) },
		getReused: func(i int) error { return c.Get(ctx, keys[i%1000], reused, client.UnsafeDisableDeepCopy) },
		indexCopy: func(i int) error { return c.List(ctx, m.list(), client.MatchingFields{"node": nodes[i%1000]}) },
		indexShared: func(i int) error {
			return c.List(ctx, m.list(), client.MatchingFields{"node": nodes[i%1000]}, client.UnsafeDisableDeepCopy)
		},
		labelNone: func(int) error { return c.List(ctx, m.list(), client.MatchingLabels{"no": "such"}) },
		allShared: func(int) error { return c.List(ctx, m.list(), client.UnsafeDisableDeepCopy) },
		allCopy:   func(int) error { return c.List(ctx, m.list()) },
	}
	figures = map[string]float64{}
	for _, name := range readNames {
		if figures[name], err = m.time(reads[name]); err != nil {
			return 0, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return objects, figures, nil
}

// time is the CPU microseconds of one read in the steady state. It begins and ends with the end of
// a garbage collection, so that the work of each is counted whole: a second of reads may have none
// from a large heap, and several from a small one. Reads that make little garbage are timed for a
// while.
func (m measurement) time(read func(i int) error) (float64, error) {
	n := 0
	until := func(enough func(cycles uint64, spent time.Duration) bool) error {
		first, began := cycles(), time.Now()
		for {
			for range max(1, n/1000) {
				if err := read(n); err != nil {
					return err
				}
				n++
			}
			if enough(cycles()-first, time.Since(began)) {
				return nil
			}
		}
	}
	runtime.GC()
	garbage := false
	if err := until(func(cycles uint64, spent time.Duration) bool {
		garbage = cycles > 0 // and the heap has grown to its size
		return garbage || spent > 10*m.Each
	}); err != nil {
		return 0, err
	}
	before, first, last := cpu(), n, uint64(0)
	err := until(func(cycles uint64, spent time.Duration) bool {
		ended := cycles > last
		last = cycles
		return spent > m.Each && (!garbage || ended && cycles > 2 || spent > 20*m.Each)
	})
	return float64((cpu() - before).Microseconds()) / float64(n-first), err
}

// cycles is the number of garbage collections that have ended.
func cycles() uint64 {
	sample := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// cpu is the user and system time of this process.
func cpu() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// watchHeap samples the heap until its result is called, which returns the largest value.
func watchHeap(ctx context.Context) (peak func() uint64) {
	var most atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.Tick(time.Millisecond); ; {
			most.Store(max(most.Load(), heap()))
			select {
			case <-tick:
			case <-done:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() uint64 { close(done); <-ended; return most.Load() }
}
