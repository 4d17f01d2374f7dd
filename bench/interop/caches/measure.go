package main

import (
	"context"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/controllerruntime"
)

// read fills a cache, and reads it.
func read(ctx context.Context, m measurement) harness.Figures {
	c := m.newCache()
	harness.Check(c.IndexField(ctx, &corev1.Pod{}, "node", nodeOf))
	runtime.GC()
	before := harness.CPU()
	start(ctx, c)
	f := harness.Figures{"cpu": (harness.CPU() - before).Seconds(), "live": harness.Live(), "first": harness.Used()["peak"]}
	debug.FreeOSMemory()
	reads := m.reads(ctx, c)
	f["last"] = harness.Used()["peak"]
	runtime.KeepAlive(c)
	return f.With("", reads)
}

// start runs a cache, and returns when it has synced.
func start(ctx context.Context, c cache.Cache) {
	go func() { _ = c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		harness.Fail("the cache has not synced")
	}
}

// optionsOf are those of a cache of one kind.
func optionsOf(kind string) cache.Options {
	log.SetLogger(logr.Discard())
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	return cache.Options{Mapper: mapper, DefaultTransform: cache.TransformStripManagedFields()}
}

func (m measurement) newCache() cache.Cache {
	options := optionsOf("Pod")
	if m.Trim {
		options.DefaultTransform = trim
	}
	config := &rest.Config{Host: m.URL}
	if m.Kubeconfig != "" {
		config = harness.Must(clientcmd.BuildConfigFromFlags("", m.Kubeconfig))
	}
	config.QPS = -1
	if m.Library == "tributary" {
		return harness.Must(controllerruntime.NewCache(config, options))
	}
	return harness.Must(cache.New(config, options))
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

// nodeOf is what pods are indexed by.
func nodeOf(obj client.Object) []string { return []string{obj.(*corev1.Pod).Spec.NodeName} }

// reads times each kind of read for a while, and counts the objects.
func (m measurement) reads(ctx context.Context, c client.Reader) harness.Figures {
	var all corev1.PodList
	harness.Check(c.List(ctx, &all, client.UnsafeDisableDeepCopy))
	objects := len(all.Items)
	if objects == 0 || m.Kubeconfig == "" && objects != m.Objects {
		harness.Fail("the cache has %d objects, not %d", objects, m.Objects)
	}
	random := rand.New(rand.NewPCG(1, 2))
	keys, nodes := make([]client.ObjectKey, 1000), make([]client.MatchingFields, 1000)
	for i := range keys {
		pod := &all.Items[random.IntN(objects)]
		keys[i], nodes[i] = client.ObjectKeyFromObject(pod), client.MatchingFields{"node": pod.Spec.NodeName}
	}
	all.Items = nil
	runtime.GC()
	get := func(options ...client.GetOption) func(int) error {
		return func(i int) error { return c.Get(ctx, keys[i%1000], &corev1.Pod{}, options...) }
	}
	list := func(options ...client.ListOption) func(int) error {
		return func(int) error { return c.List(ctx, &corev1.PodList{}, options...) }
	}
	byIndex := func(options ...client.ListOption) func(int) error {
		return func(i int) error { return c.List(ctx, &corev1.PodList{}, append(options, nodes[i%1000])...) }
	}
	f := harness.Figures{"objects": float64(objects)}
	for _, one := range []struct {
		name string
		read func(i int) error
	}{
		{"get", get()}, {"get.shared", get(client.UnsafeDisableDeepCopy)},
		{"index", byIndex()}, {"index.shared", byIndex(client.UnsafeDisableDeepCopy)},
		{"none", list(client.MatchingLabels{"no": "such"})}, {"all.shared", list(client.UnsafeDisableDeepCopy)}, {"all", list()},
	} {
		f[one.name] = m.time(one.read)
	}
	return f
}

// time is the CPU microseconds of one read in the steady state. It begins and ends with the end of
// a garbage collection, so that the work of each is counted whole: a second of reads may have none
// from a large heap, and several from a small one. Reads that make little garbage are timed for a
// while.
func (m measurement) time(read func(i int) error) float64 {
	n := 0
	until := func(enough func(cycles float64, spent time.Duration) bool) {
		for first, began := cycles(), time.Now(); ; {
			for range max(1, n/1000) {
				harness.Check(read(n))
				n++
			}
			if enough(cycles()-first, time.Since(began)) {
				return
			}
		}
	}
	runtime.GC()
	garbage := false
	until(func(cycles float64, spent time.Duration) bool {
		garbage = cycles > 0 // and the heap has grown to its size
		return garbage || spent > 10*m.Each
	})
	before, first, last := harness.CPU(), n, 0.0
	until(func(cycles float64, spent time.Duration) bool {
		ended := cycles > last
		last = cycles
		return spent > m.Each && (!garbage || ended && cycles > 2 || spent > 20*m.Each)
	})
	return float64((harness.CPU() - before).Microseconds()) / float64(n-first)
}

// cycles is the number of garbage collections that have ended.
func cycles() float64 { return harness.Metric("/gc/cycles/total:gc-cycles") }
