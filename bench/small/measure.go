package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientcache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// start runs informers until all have their first state.
func start(ctx context.Context, m measurement) harness.Figures {
	log.SetLogger(logr.Discard())
	number := slices.IndexFunc(kinds, func(k kind) bool { return k.Name == m.Kind })
	config := harness.Config(m.host(fmt.Sprint(number)))
	client := harness.RESTClient(config, corev1.SchemeGroupVersion)
	// The connection is no informer's.
	body := harness.Must(client.Get().Namespace("0").Resource(kinds[number].Resource).Param("watch", "true").Stream(ctx))
	defer body.Close()
	harness.Collect()
	before := harness.Used()
	var started copies
	switch {
	case m.Cache:
		started = m.cache(ctx, config)
	case m.Program:
		config.Host = m.host("program")
		started = m.program(ctx, config)
	case m.Slim != "":
		started = m.slim(ctx, config)
	case m.Library == clientGo:
		started = m.clientGos(ctx, client)
	case m.Kind == "Secret":
		started = ours(ctx, m, client, listwatch.FromClient[corev1.Secret])
	default:
		started = ours(ctx, m, client, listwatch.FromClient[corev1.Pod])
	}
	started.wait()
	cpu := harness.Used().Since(before)["cpu"]
	time.Sleep(500 * time.Millisecond) // requests and first states are over
	harness.Collect()
	defer runtime.KeepAlive(started)
	if m.Idle > 0 {
		defer harness.Profile(m.Library)()
		before := harness.Used()
		time.Sleep(m.Idle)
		return harness.Used().Since(before).With("", harness.Figures{"minutes": m.Idle.Minutes()})
	}
	f := harness.Used().Since(before)
	f["cpu"], f["informers"] = cpu, float64(m.Informers)
	f["goroutines"] -= float64(started.handlers)
	return f
}

// host is the URL of the server: one path for all idle ones, and else the path that says what is
// listed.
func (m measurement) host(kinds string) string {
	if m.Idle > 0 {
		return m.URL
	}
	return fmt.Sprintf("%s/%s/%d", m.URL, kinds, m.Each)
}

// copies are informers or a cache of namespaces that were started.
type copies struct {
	held     []any
	handlers int    // goroutines of handlers
	wait     func() // until each handler has its first state
}

func ours[T store.Object](ctx context.Context, m measurement, client rest.Interface, source func(rest.Interface, string, ...listwatch.Option) *listwatch.ListWatch[T]) copies {
	var synced sync.WaitGroup
	c := copies{handlers: m.Informers, wait: synced.Wait}
	for i := range m.Informers {
		it := informer.New(source(client, kindOf(m.Kind).Resource, listwatch.InNamespace(fmt.Sprint(i))))
		h := harness.Must(it.AddHandler(func(informer.Event[T]) {}))
		go func() { _ = it.Run(ctx) }()
		synced.Go(func() { _ = h.WaitSynced(ctx) })
		c.held = append(c.held, it)
	}
	return c
}

func (m measurement) clientGos(ctx context.Context, client rest.Interface) copies {
	var synced sync.WaitGroup
	c := copies{handlers: 2 * m.Informers, wait: synced.Wait}
	kind := kindOf(m.Kind)
	for i := range m.Informers {
		example := harness.Must(scheme.Scheme.New(corev1.SchemeGroupVersion.WithKind(map[string]string{"pods": "Pod", "secrets": "Secret"}[kind.Resource])))
		source := clientcache.NewListWatchFromClient(client, kind.Resource, fmt.Sprint(i), fields.Everything())
		it := clientcache.NewSharedIndexInformer(source, example, 0, clientcache.Indexers{})
		h := harness.Must(it.AddEventHandler(clientcache.ResourceEventHandlerFuncs{AddFunc: func(any) {}}))
		go it.RunWithContext(ctx)
		synced.Go(func() { clientcache.WaitForCacheSync(ctx.Done(), h.HasSynced) })
		c.held = append(c.held, it)
	}
	return c
}

// cache is one cache of all namespaces, without handlers.
func (m measurement) cache(ctx context.Context, config *rest.Config) copies {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	options := cache.Options{Mapper: mapper, DefaultNamespaces: map[string]cache.Config{}}
	for i := range m.Informers {
		options.DefaultNamespaces[fmt.Sprint(i)] = cache.Config{}
	}
	newCache := cache.New
	if m.Library == tributary {
		newCache = controllerruntime.NewCache
	}
	c := harness.Must(newCache(config, options))
	harness.Must(c.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false)))
	go func() { _ = c.Start(ctx) }()
	return copies{held: []any{c}, wait: func() {
		if !c.WaitForCacheSync(ctx) {
			harness.Fail("the cache has not synced")
		}
	}}
}
