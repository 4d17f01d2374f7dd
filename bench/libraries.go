package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
	"github.com/tributary-go/tributary/store/packed/zstd"
)

// The libraries, and the stores of ours: atRest has objects as bytes; coded has a code for texts,
// too.
const (
	interned          = "tributary"
	plain             = "tributary-plain" // without sharing
	atRest            = "packed"
	coded             = "packed-zstd"
	clientGoReflector = "reflector"
	clientGoInformer  = "informer"
)

// copied is a library's copy of the collection.
type copied struct {
	run     func(ctx context.Context)
	version func() string  // of the copy
	shared  func() float64 // of the wire's bytes, which were not decoded again; nil: unknown
	keys    func() []string
	get     func(key string) (found bool)
	all     func() (found int) // reads all objects
	// indexed adds an index of namespaces, and returns a function that reads the objects of one.
	indexed func() (read func(namespace string) (found int))
}

// open makes the library's copy.
func (r reading) open() copied {
	c := world.CodecOf(r.Kind, 0, r.Form)
	config := &rest.Config{Host: r.URL, QPS: -1}
	if r.Kubeconfig != "" {
		config = clientConfig(r.Kubeconfig)
	}
	config.ContentType = r.Form.ContentType()
	if r.Library == clientGoReflector || r.Library == clientGoInformer {
		return r.clientGo(config, c)
	}
	var options []listwatch.Option
	if r.Form == world.JSON {
		options = append(options, listwatch.WithJSON())
	}
	if r.How == "list" {
		options = append(options, listwatch.WithoutWatchList())
	}
	if r.Library == plain {
		options = append(options, listwatch.WithoutSharing())
	}
	return openers[c.Resource](harness.Must(listwatch.NewRESTClient(config, c.Version)), c.Resource, r, options...)
}

// openers make our copy of each resource.
var openers = map[string]func(client rest.Interface, resource string, r reading, options ...listwatch.Option) copied{
	"configmaps":      opened[corev1.ConfigMap],
	"endpointslices":  opened[discoveryv1.EndpointSlice],
	"events":          opened[corev1.Event],
	"leases":          opened[coordinationv1.Lease],
	"networkpolicies": opened[networkingv1.NetworkPolicy],
	"nodes":           opened[corev1.Node],
	"pods":            opened[corev1.Pod],
	"secrets":         opened[corev1.Secret],
	"services":        opened[corev1.Service],
	"widgets":         opened[unstructured.Unstructured],
}

func opened[O any, T interface {
	*O
	store.Object
}](client rest.Interface, resource string, r reading, options ...listwatch.Option) copied {
	source := listwatch.FromClient[O, T](client, resource, options...)
	newStore, isAtRest := packed.New[O, T], r.Library == atRest || r.Library == coded
	if r.Library == coded {
		newStore = zstd.New[O, T]
	}
	if r.Handler != "" {
		var options []informer.Option
		if isAtRest {
			options = append(options, informer.WithStore(newStore))
		}
		return handledCopy(informer.New(source, options...), r.Handler)
	}
	if isAtRest {
		st := newStore()
		c := copyOf(st, reflector.New(source.Encoded(), st.Encoded()).Run)
		c.get = func(key string) (found bool) { _, found = st.Get(key); return found }
		return c
	}
	var indexes []store.AnyIndex[T]
	if r.Indexed {
		indexes = append(indexes, store.NewIndex("namespace", func(obj T) []string { return []string{obj.GetNamespace()} }),
			store.NewIndex("node", func(obj T) []string { return nodeOf(obj) }))
	}
	st := store.NewIndexer(indexes...)
	c := copyOf(st, reflector.New(source, st).Run)
	c.get = func(key string) (found bool) { _, found = st.Get(key); return found }
	c.shared = func() float64 {
		s := source.Sharing()
		return float64(s.Shared) / float64(max(1, s.Bytes))
	}
	return c
}

// nodeOf has the value of the second index of pods, besides the namespace.
func nodeOf(obj any) []string {
	if pod, ok := obj.(*corev1.Pod); ok {
		return []string{pod.Spec.NodeName}
	}
	return nil
}

// copyOf is ours in a store.
func copyOf[T store.Object](st interface {
	Snapshot() store.Snapshot[T]
	ResourceVersion() string
	AddIndexes(...store.AnyIndex[T])
}, run func(context.Context) error) copied {
	return copied{
		run:     func(ctx context.Context) { _ = run(ctx) },
		version: st.ResourceVersion,
		keys:    func() []string { return slices.Collect(st.Snapshot().Keys()) },
		all: func() (n int) {
			for _, obj := range st.Snapshot().All() {
				n += named(obj)
			}
			return n
		},
		indexed: func() func(string) int {
			st.AddIndexes(store.ByNamespace[T]())
			snapshot := st.Snapshot()
			return func(namespace string) (n int) {
				for obj := range snapshot.InNamespace(namespace) {
					n += named(obj)
				}
				return n
			}
		},
	}
}

// named reads an object, and counts it.
func named(obj metav1.Object) int { return min(1, len(obj.GetName())) }

// clientGo makes client-go's, of a Reflector into a Store or a SharedIndexInformer.
func (r reading) clientGo(config *rest.Config, c world.Codec) copied {
	var source cache.ListerWatcher
	var example runtime.Object
	if r.Form == world.Tree {
		widgets := harness.Must(dynamic.NewForConfig(config)).Resource(c.Version.WithResource(c.Resource))
		example = &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.Version.String(), "kind": c.Kind}}
		source = &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return widgets.List(ctx, o)
			},
			WatchFuncWithContext: widgets.Watch,
		}
	} else {
		example = harness.Must(scheme.Scheme.New(c.Version.WithKind(c.Kind)))
		source = cache.NewListWatchFromClient(harness.RESTClient(config, c.Version), c.Resource, "", fields.Everything())
	}
	indexes := cache.Indexers{}
	if r.Indexed {
		indexes = cache.Indexers{"namespace": cache.MetaNamespaceIndexFunc, "node": func(obj any) ([]string, error) { return nodeOf(obj), nil }}
	}
	if r.Library == clientGoInformer || r.Handler != "" {
		i := cache.NewSharedIndexInformer(source, example, 0, indexes)
		if r.Handler != "" {
			return clientGoHandledCopy(i, r.Handler)
		}
		return clientGoCopy(i.GetIndexer(), i.RunWithContext, func() string {
			if !i.HasSynced() { // its reflector is ahead of its store
				return ""
			}
			return i.LastSyncResourceVersion()
		})
	}
	st := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexes)
	reflector := cache.NewReflectorWithOptions(source, example, st, cache.ReflectorOptions{})
	return clientGoCopy(st, reflector.RunWithContext, reflector.LastSyncResourceVersion)
}

func clientGoCopy(st cache.Indexer, run func(context.Context), version func() string) copied {
	read := func(objs []any) (n int) {
		for _, obj := range objs {
			n += named(obj.(metav1.Object))
		}
		return n
	}
	return copied{
		run: run, version: version, keys: st.ListKeys,
		get: func(key string) (found bool) { _, found, _ = st.GetByKey(key); return found },
		all: func() int { return read(st.List()) },
		indexed: func() func(string) int {
			harness.Check(st.AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}))
			return func(namespace string) int { return read(harness.Must(st.ByIndex(cache.NamespaceIndex, namespace))) }
		},
	}
}

// handling is the part of each event that a handler of an informer reads.
type handling string

const (
	byKey      handling = "key"
	byMetadata handling = "metadata" // the labels of the new object
	wholly     handling = "whole"    // the objects before and after
)

// seen counts, so that no read is for nothing.
type seen struct{ atomic.Int64 }

func (s *seen) labels(obj metav1.Object) { s.Add(int64(len(obj.GetLabels()))) }

func (s *seen) both(before, after metav1.Object) {
	s.Add(int64(len(after.GetName())))
	if before != nil {
		s.Add(int64(len(before.GetName())))
	}
}

// handledCopy is ours with a handler. Its version is empty until the handler is told all of it.
func handledCopy[T store.Object](i *informer.Informer[T], how handling) copied {
	var seen seen
	var handler *informer.Handler[T]
	switch how {
	case byKey:
		handler = harness.Must(i.AddMetaHandler(func(e informer.Event[store.Object]) { seen.Add(int64(len(e.Key))) }))
	case byMetadata:
		handler = harness.Must(i.AddMetaHandler(func(e informer.Event[store.Object]) { seen.labels(e.Object()) }))
	default:
		handler = harness.Must(i.AddHandler(func(e informer.Event[T]) {
			if e.Type == informer.Updated {
				seen.both(e.Old, e.New)
			}
		}))
	}
	return copied{
		run:  func(ctx context.Context) { _ = i.Run(ctx) },
		keys: func() []string { return slices.Collect(i.Snapshot().Keys()) },
		version: func() string {
			if version := i.Snapshot().ResourceVersion(); handler.CaughtUp() {
				return version
			}
			return ""
		},
	}
}

// clientGoHandledCopy is client-go's with a handler. Its version is that of the last update.
func clientGoHandledCopy(i cache.SharedIndexInformer, how handling) copied {
	var seen seen
	var told atomic.Pointer[string]
	first := world.Version(firstVersion)
	told.Store(&first)
	handle := func(before, after any) {
		switch obj := after.(metav1.Object); how {
		case byKey:
			key, _ := cache.MetaNamespaceKeyFunc(after)
			seen.Add(int64(len(key)))
		case byMetadata:
			seen.labels(obj)
		default:
			old, _ := before.(metav1.Object)
			seen.both(old, obj)
		}
	}
	handler := harness.Must(i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { handle(nil, obj) },
		UpdateFunc: func(before, after any) {
			handle(before, after)
			version := after.(metav1.Object).GetResourceVersion()
			told.Store(&version)
		},
	}))
	return clientGoCopy(i.GetIndexer(), i.RunWithContext, func() string {
		if !handler.HasSynced() {
			return ""
		}
		return *told.Load()
	})
}

// env has the variables of the process of a reading.
func (r reading) env() []string {
	env := []string{fmt.Sprintf("KUBE_FEATURE_WatchListClient=%t", r.How == "watchlist")}
	if r.Cores > 0 {
		env = append(env, fmt.Sprintf("GOMAXPROCS=%d", r.Cores))
	}
	return env
}
