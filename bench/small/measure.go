package main

import (
	"context"
	"errors"
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
func start(ctx context.Context, m measurement) (harness.Figures, error) {
	log.SetLogger(logr.Discard())
	number := slices.IndexFunc(kinds, func(k kind) bool { return k.Name == m.Kind })
	config := &rest.Config{
		Host: m.host(number), TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: harness.Protobuf, GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
		APIPath:       "/api",
	}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	start := m.informers(client)
	if m.Cache {
		start = m.cache(config)
	}
	// The connection is no informer's.
	body, err := client.Get().Namespace("0").Resource(kinds[number].Resource).Param("watch", "true").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	harness.Collect()
	before := harness.Used()
	handlers, wait, err := start(ctx, m.Informers)
	if err != nil {
		return nil, err
	}
	wait()
	cpu := harness.Used().Since(before)["cpu"]
	time.Sleep(500 * time.Millisecond) // requests and first states are over
	harness.Collect()
	if m.Idle > 0 {
		defer harness.Profile(m.Library)()
		before := harness.Used()
		time.Sleep(m.Idle)
		f := harness.Used().Since(before)
		f["minutes"] = m.Idle.Minutes()
		runtime.KeepAlive(start)
		return f, nil
	}
	f := harness.Used().Since(before)
	f["cpu"], f["informers"] = cpu, float64(m.Informers)
	f["goroutines"] -= float64(handlers)
	runtime.KeepAlive(start)
	return f, nil
}

// host is the URL of the server: one path for all idle ones, and else the path that says what is
// listed.
func (m measurement) host(kind int) string {
	if m.Idle > 0 {
		return m.URL
	}
	return fmt.Sprintf("%s/%d/%d", m.URL, kind, m.Each)
}

// starter starts informers of namespaces, and returns how many goroutines their handlers have. Wait
// returns once each handler has its first state.
type starter func(ctx context.Context, count int) (handlers int, wait func(), err error)

// informers are those of either library.
func (m measurement) informers(client rest.Interface) starter {
	if m.Library == clientGo {
		return m.clientGos(client)
	}
	if m.Kind == "Secret" {
		return ours(m, client, listwatch.FromClient[corev1.Secret])
	}
	return ours(m, client, listwatch.FromClient[corev1.Pod])
}

var held []any

func ours[T store.Object](m measurement, client rest.Interface, source func(rest.Interface, string, ...listwatch.Option) *listwatch.ListWatch[T]) starter {
	return func(ctx context.Context, count int) (handlers int, wait func(), err error) {
		var synced sync.WaitGroup
		for i := range count {
			it := informer.New(source(client, kindOf(m.Kind).Resource, listwatch.InNamespace(fmt.Sprint(i))))
			h, err := it.AddHandler(func(informer.Event[T]) {})
			if err != nil {
				return 0, nil, err
			}
			go func() { _ = it.Run(ctx) }()
			synced.Go(func() { _ = h.WaitSynced(ctx) })
			held = append(held, it)
		}
		return count, synced.Wait, nil
	}
}

func (m measurement) clientGos(client rest.Interface) starter {
	return func(ctx context.Context, count int) (handlers int, wait func(), err error) {
		var synced sync.WaitGroup
		kind := kindOf(m.Kind)
		for i := range count {
			example, err := scheme.Scheme.New(corev1.SchemeGroupVersion.WithKind(map[string]string{"pods": "Pod", "secrets": "Secret"}[kind.Resource]))
			if err != nil {
				return 0, nil, err
			}
			source := clientcache.NewListWatchFromClient(client, kind.Resource, fmt.Sprint(i), fields.Everything())
			it := clientcache.NewSharedIndexInformer(source, example, 0, clientcache.Indexers{})
			h, err := it.AddEventHandler(clientcache.ResourceEventHandlerFuncs{AddFunc: func(any) {}})
			if err != nil {
				return 0, nil, err
			}
			go it.RunWithContext(ctx)
			synced.Go(func() { clientcache.WaitForCacheSync(ctx.Done(), h.HasSynced) })
			held = append(held, it)
		}
		return 2 * count, synced.Wait, nil
	}
}

// cache is one cache of all namespaces, without handlers.
func (m measurement) cache(config *rest.Config) starter {
	return func(ctx context.Context, count int) (handlers int, wait func(), err error) {
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
		options := cache.Options{Mapper: mapper, DefaultNamespaces: map[string]cache.Config{}}
		for i := range count {
			options.DefaultNamespaces[fmt.Sprint(i)] = cache.Config{}
		}
		var c cache.Cache
		if m.Library == tributary {
			c, err = controllerruntime.NewCache(config, options)
		} else {
			c, err = cache.New(config, options)
		}
		if err != nil {
			return 0, nil, err
		}
		if _, err := c.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false)); err != nil {
			return 0, nil, err
		}
		held = append(held, c)
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }()
		return 0, func() {
			if !c.WaitForCacheSync(ctx) {
				panic(errors.Join(errors.New("the cache has not synced"), <-ended))
			}
		}, nil
	}
}
