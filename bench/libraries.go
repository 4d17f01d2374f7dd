package main

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
	"github.com/tributary-go/tributary/store/packed/zstd"
)

// open makes the library's copy.
func (r reading) open() (copied, error) {
	c := world.CodecOf(r.Kind, 0, r.Form)
	config := &rest.Config{Host: r.URL, QPS: -1}
	if r.Kubeconfig != "" {
		var err error
		if config, err = clientConfig(r.Kubeconfig); err != nil {
			return nil, err
		}
	}
	config.ContentType = r.Form.ContentType()
	if r.Library == "reflector" || r.Library == "informer" {
		return r.clientGo(config, c)
	}
	var options []listwatch.Option
	if r.Form == world.JSON {
		options = append(options, listwatch.WithJSON())
	}
	if r.How == "list" {
		options = append(options, listwatch.WithoutWatchList())
	}
	if r.Library == "tributary-plain" {
		options = append(options, listwatch.WithoutSharing())
	}
	client, err := listwatch.NewRESTClient(config, c.Version)
	if err != nil {
		return nil, err
	}
	return openers[c.Resource](client, c.Resource, r, options...), nil
}

// openers make our copy of each resource.
var openers = map[string]func(client rest.Interface, resource string, r reading, options ...listwatch.Option) copied{
	"configmaps":     opened[corev1.ConfigMap],
	"endpointslices": opened[discoveryv1.EndpointSlice],
	"events":         opened[corev1.Event],
	"leases":         opened[coordinationv1.Lease],
	"nodes":          opened[corev1.Node],
	"pods":           opened[corev1.Pod],
	"secrets":        opened[corev1.Secret],
	"services":       opened[corev1.Service],
	"widgets":        opened[unstructured.Unstructured],
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
		return newHandled(source, isAtRest, r.Handler, newStore)
	}
	if isAtRest {
		return newPacked(source, newStore())
	}
	var indexes []store.AnyIndex[T]
	if r.Indexed {
		indexes = append(indexes, store.NewIndex("namespace", func(obj T) []string { return []string{obj.GetNamespace()} }),
			store.NewIndex("node", func(obj T) []string { return nodeOf(obj) }))
	}
	return newOurs(source, indexes...)
}

// nodeOf has the value of the second index of pods, besides the namespace.
func nodeOf(obj any) []string {
	if pod, ok := obj.(*corev1.Pod); ok {
		return []string{pod.Spec.NodeName}
	}
	return nil
}

type ours[T store.Object] struct {
	source    *listwatch.ListWatch[T]
	store     *store.Indexer[T]
	reflector *reflector.Reflector[T]
}

func newOurs[T store.Object](source *listwatch.ListWatch[T], indexes ...store.AnyIndex[T]) *ours[T] {
	st := store.NewIndexer(indexes...)
	return &ours[T]{source: source, store: st, reflector: reflector.New(source, st)}
}

func (o *ours[T]) run(ctx context.Context) { _ = o.reflector.Run(ctx) }
func (o *ours[T]) version() string         { return o.store.ResourceVersion() }
func (o *ours[T]) len() int                { return o.store.Snapshot().Len() }
func (o *ours[T]) shared() float64 {
	s := o.source.Sharing()
	return float64(s.Shared) / float64(max(1, s.Bytes))
}

// clientGo makes client-go's, of a Reflector into a Store or a SharedIndexInformer.
func (r reading) clientGo(config *rest.Config, c world.Codec) (copied, error) {
	var source cache.ListerWatcher
	var example runtime.Object
	if r.Form == world.Tree {
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		widgets := client.Resource(c.Version.WithResource(c.Resource))
		example = &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.Version.String(), "kind": c.Kind}}
		source = &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return widgets.List(ctx, o)
			},
			WatchFuncWithContext: widgets.Watch,
		}
	} else {
		config.GroupVersion, config.NegotiatedSerializer = &c.Version, scheme.Codecs.WithoutConversion()
		config.APIPath, _, _ = strings.Cut(strings.TrimPrefix(c.Path(), "/"), "/")
		client, err := rest.RESTClientFor(config)
		if err != nil {
			return nil, err
		}
		if example, err = scheme.Scheme.New(c.Version.WithKind(c.Kind)); err != nil {
			return nil, err
		}
		source = cache.NewListWatchFromClient(client, c.Resource, "", fields.Everything())
	}
	indexes := cache.Indexers{}
	if r.Indexed {
		indexes = cache.Indexers{"namespace": cache.MetaNamespaceIndexFunc, "node": func(obj any) ([]string, error) { return nodeOf(obj), nil }}
	}
	if r.Handler != "" {
		return newClientGoHandled(cache.NewSharedIndexInformer(source, example, 0, indexes), r.Handler)
	}
	if r.Library == "informer" {
		return clientGoInformer{cache.NewSharedIndexInformer(source, example, 0, indexes)}, nil
	}
	st := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexes)
	return clientGoReflector{cache.NewReflectorWithOptions(source, example, st, cache.ReflectorOptions{}), st}, nil
}

type clientGoInformer struct{ cache.SharedIndexInformer }

func (i clientGoInformer) run(ctx context.Context) { i.RunWithContext(ctx) }
func (i clientGoInformer) version() string {
	if !i.HasSynced() { // its reflector is ahead of its store
		return ""
	}
	return i.LastSyncResourceVersion()
}
func (i clientGoInformer) len() int        { return len(i.GetStore().ListKeys()) }
func (i clientGoInformer) shared() float64 { return 0 }

type clientGoReflector struct {
	*cache.Reflector
	store cache.Indexer
}

func (c clientGoReflector) run(ctx context.Context) { c.RunWithContext(ctx) }
func (c clientGoReflector) version() string         { return c.LastSyncResourceVersion() }
func (c clientGoReflector) len() int                { return len(c.store.ListKeys()) }
func (c clientGoReflector) shared() float64         { return 0 }

// env has the variables of the process of a reading.
func (r reading) env() []string {
	env := []string{fmt.Sprintf("KUBE_FEATURE_WatchListClient=%t", r.How == "watchlist")}
	if r.Cores > 0 {
		env = append(env, fmt.Sprintf("GOMAXPROCS=%d", r.Cores))
	}
	return env
}
