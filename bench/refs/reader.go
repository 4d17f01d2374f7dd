package main

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
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
func read(ctx context.Context, w world) harness.Figures {
	var received atomic.Int64
	config := harness.Config(w.Server)
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return counting{conn, &received}, err
	}
	clientset := harness.Must(kubernetes.NewForConfig(config))
	harness.Must(clientset.Discovery().ServerVersion()) // the connection is there
	harness.Do(ctx, w.Control+"/load")                  // of the process before
	began := time.Now()
	keep := use(ctx, w, clientset)
	took, count := time.Since(began).Seconds(), received.Load()
	f := harness.Call[harness.Figures](ctx, w.Control+"/load")
	if w.Churn > 0 {
		before := harness.CPU()
		harness.Do(ctx, w.Control+"/churn")
		time.Sleep(time.Second) // the last events are on their way
		f["churnCPU"], f["churnRead"] = (harness.CPU() - before).Seconds(), float64(received.Load()-count)
	}
	time.Sleep(2 * time.Second) // connections that are not used end
	harness.Collect()
	debug.FreeOSMemory()
	f = f.With("", harness.Used())
	f["wall"], f["read"] = took, float64(count)
	runtime.KeepAlive(keep)
	return f
}

// use reads with a library, and returns once all is read.
func use(ctx context.Context, w world, clientset kubernetes.Interface) any {
	core := clientset.CoreV1().RESTClient()
	switch w.Library {
	case followed:
		return follow(ctx, core, w.Names, false)
	case watched:
		return follow(ctx, core, w.Names, false, refs.WithNamespaceWatch(100))
	case referred:
		return follow(ctx, core, w.Referred, true)
	case shared:
		return follow(ctx, core, w.Referred, true, refs.WithNamespaceWatch(1))
	case kubelet:
		return reflect(ctx, core, w.Names)
	case clientGo:
		factory := informers.NewSharedInformerFactory(clientset, 0)
		return inform(ctx, factory, factory.Core().V1().Secrets().Informer(), w.Secrets)
	case oneNode:
		nodes := refs.New(refs.FromClient[corev1.Node](core, "nodes"))
		go func() { _ = nodes.Run(ctx) }()
		name := nodeName(w.Nodes / 2)
		nodes.SetOwner("lookup", refs.In("", name))
		harness.Must(nodes.Get(ctx, "", name))
		return nodes
	case allNodes:
		factory := informers.NewSharedInformerFactory(clientset, 0)
		return inform(ctx, factory, factory.Core().V1().Nodes().Informer(), w.Nodes)
	}
	return nil
}

// inform returns an informer once it has all n objects.
func inform(ctx context.Context, factory informers.SharedInformerFactory, informer cache.SharedIndexInformer, n int) any {
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) || len(informer.GetStore().ListKeys()) != n {
		harness.Fail("the informer has %d objects of %d", len(informer.GetStore().ListKeys()), n)
	}
	return informer
}

// follow refers to the first n names, and gets all.
func follow(ctx context.Context, client rest.Interface, n int, exist bool, options ...refs.Option) any {
	secrets := refs.New(refs.FromClient[corev1.Secret](client, "secrets"), options...)
	go func() { _ = secrets.Run(ctx) }()
	for i := range n {
		secrets.SetOwner(types.UID(fmt.Sprintf("owner-%d", i)), refs.In(namespace, secretName(i)))
	}
	harness.AtOnce(n, 32, func(i int) {
		_, err := secrets.Get(ctx, namespace, secretName(i))
		if exist && err != nil || !exist && !apierrors.IsNotFound(err) {
			harness.Fail("%s: %w", secretName(i), err)
		}
	})
	return secrets
}

// reflect follows the first n names as the kubelet's manager does: a reflector and a store for
// each.
func reflect(ctx context.Context, client rest.Interface, n int) any {
	var all []*cache.Reflector
	for i := range n {
		lw := cache.NewListWatchFromClient(client, "secrets", namespace, fields.OneTermEqualSelector(metav1.ObjectNameField, secretName(i)))
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
	return all
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
