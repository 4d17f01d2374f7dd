package main

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/refs"
)

// The libraries. Each process imports all of them.
const (
	bare     = "bare program"
	followed = "refs"
	watched  = "refs, the namespace watched"
	referred = "refs, with objects"
	shared   = "refs, with objects, the namespace watched"
	clientGo = "client-go informer"
	oneNode  = "refs, one Node"
	allNodes = "client-go informer of Nodes"
	kubelet  = "client-go reflectors"
)

// read is a program with one library.
func read(ctx context.Context, w world) (harness.Figures, error) {
	var received atomic.Int64
	config := &rest.Config{
		Host: w.Server, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: harness.Protobuf},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return counting{conn, &received}, err
		},
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if _, err := clientset.Discovery().ServerVersion(); err != nil { // the connection is there
		return nil, err
	}
	if err := harness.Do(ctx, w.Server+"/load"); err != nil { // of the process before
		return nil, err
	}
	began := time.Now()
	keep, err := use(ctx, w, clientset)
	if err != nil {
		return nil, err
	}
	took, count := time.Since(began).Seconds(), received.Load()
	f, err := harness.Call[harness.Figures](ctx, w.Server+"/load")
	if err != nil {
		return nil, err
	}
	if w.Churn > 0 {
		before := harness.CPU()
		if err := harness.Do(ctx, w.Server+"/churn"); err != nil {
			return nil, err
		}
		time.Sleep(time.Second) // the last events are on their way
		f["churnCPU"], f["churnRead"] = (harness.CPU() - before).Seconds(), float64(received.Load()-count)
	}
	time.Sleep(2 * time.Second) // connections that are not used end
	harness.Collect()
	debug.FreeOSMemory()
	f = f.With("", harness.Used())
	f["wall"], f["read"] = took, float64(count)
	runtime.KeepAlive(keep)
	return f, nil
}

// use reads with a library, and returns once all is read.
func use(ctx context.Context, w world, clientset kubernetes.Interface) (any, error) {
	switch w.Library {
	case followed:
		return follow(ctx, clientset, w.Names, false)
	case watched:
		return follow(ctx, clientset, w.Names, false, refs.WithNamespaceWatch(100))
	case referred:
		return follow(ctx, clientset, w.Referred, true)
	case shared:
		return follow(ctx, clientset, w.Referred, true, refs.WithNamespaceWatch(1))
	case kubelet:
		return reflect(ctx, clientset, w.Names)
	case clientGo:
		factory := informers.NewSharedInformerFactory(clientset, 0)
		return inform(ctx, factory, factory.Core().V1().Secrets().Informer(), w.Secrets)
	case oneNode:
		nodes := refs.New(refs.FromClient[corev1.Node](clientset.CoreV1().RESTClient(), "nodes"))
		go func() { _ = nodes.Run(ctx) }()
		name := nodeOf(w.Nodes / 2).Name
		nodes.SetOwner("lookup", refs.In("", name))
		_, err := nodes.Get(ctx, "", name)
		return nodes, err
	case allNodes:
		factory := informers.NewSharedInformerFactory(clientset, 0)
		return inform(ctx, factory, factory.Core().V1().Nodes().Informer(), w.Nodes)
	}
	return nil, nil
}

// inform returns an informer once it has all n objects.
func inform(ctx context.Context, factory informers.SharedInformerFactory, informer cache.SharedIndexInformer, n int) (any, error) {
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) || len(informer.GetStore().ListKeys()) != n {
		return nil, fmt.Errorf("the informer has %d objects of %d", len(informer.GetStore().ListKeys()), n)
	}
	return informer, nil
}

// follow refers to the first n names, and gets all.
func follow(ctx context.Context, clientset kubernetes.Interface, n int, exist bool, options ...refs.Option) (any, error) {
	secrets := refs.New(refs.FromClient[corev1.Secret](clientset.CoreV1().RESTClient(), "secrets"), options...)
	go func() { _ = secrets.Run(ctx) }()
	for i := range n {
		secrets.SetOwner(types.UID(fmt.Sprintf("owner-%d", i)), refs.In(namespace, secretName(i)))
	}
	var all sync.WaitGroup
	var failed atomic.Pointer[error]
	for part := range 32 {
		all.Go(func() {
			for i := part; i < n; i += 32 {
				_, err := secrets.Get(ctx, namespace, secretName(i))
				if exist && err != nil || !exist && !apierrors.IsNotFound(err) {
					failed.Store(&err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return secrets, nil
}

// reflect follows the first n names as the kubelet's manager does: a reflector and a store for
// each.
func reflect(ctx context.Context, clientset kubernetes.Interface, n int) (any, error) {
	var all []*cache.Reflector
	for i := range n {
		lw := cache.NewListWatchFromClient(clientset.CoreV1().RESTClient(), "secrets", namespace,
			fields.OneTermEqualSelector(metav1.ObjectNameField, secretName(i)))
		r := cache.NewReflectorWithOptions(lw, &corev1.Secret{}, cache.NewStore(cache.MetaNamespaceKeyFunc),
			cache.ReflectorOptions{Name: secretName(i), MinWatchTimeout: 30 * time.Minute})
		all = append(all, r)
		go r.RunWithContext(ctx)
	}
	for _, r := range all {
		for r.LastSyncResourceVersion() == "" {
			time.Sleep(time.Millisecond)
		}
	}
	return all, nil
}

// counting counts the bytes read from a connection.
type counting struct {
	net.Conn
	bytes *atomic.Int64
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}
