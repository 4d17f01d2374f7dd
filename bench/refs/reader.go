package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
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

	"github.com/tributary-go/tributary/internal/self"
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

// result has the figures of a process, in bytes and seconds.
type result struct {
	Heap, Stacks, RSS, Peak float64
	Goroutines              int
	Seconds, CPU            float64
	Read                    int64
	ChurnCPU                float64 // seconds
	ChurnRead               int64
	load
}

// read is a program with one library.
func read(ctx context.Context, s settings, library, address string) error {
	var received atomic.Int64
	config := &rest.Config{
		Host: address, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return counting{conn, &received}, err
		},
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if _, err := clientset.Discovery().ServerVersion(); err != nil { // the connection is there
		return err
	}
	if _, err := loadOf(address); err != nil { // of the process before
		return err
	}
	began := time.Now()
	keep, err := use(ctx, s, library, clientset)
	if err != nil {
		return err
	}
	r := result{Seconds: time.Since(began).Seconds()}
	if r.load, err = loadOf(address); err != nil {
		return err
	}
	r.Read = received.Load()
	if s.Churn > 0 {
		before := processor()
		if _, err := get(address + "/churn"); err != nil {
			return err
		}
		time.Sleep(time.Second) // the last events are on their way
		r.ChurnCPU, r.ChurnRead = processor()-before, received.Load()-r.Read
	}
	time.Sleep(2 * time.Second) // connections that are not used end
	for range 3 {               // stacks shrink by half each time
		runtime.GC()
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.Heap, r.Stacks, r.Goroutines = float64(m.HeapAlloc), float64(m.StackInuse), runtime.NumGoroutine()
	r.RSS, r.Peak = float64(self.Memory("VmRSS")), float64(self.Memory("VmHWM"))
	r.CPU = processor()
	line, err := json.Marshal(r)
	fmt.Println(string(line))
	<-self.UntilInputEnds(ctx).Done()
	runtime.KeepAlive(keep)
	return err
}

// use reads with a library, and returns once all is read.
func use(ctx context.Context, s settings, library string, clientset kubernetes.Interface) (any, error) {
	switch library {
	case followed:
		return follow(ctx, clientset, s.Names, false)
	case watched:
		return follow(ctx, clientset, s.Names, false, refs.WithNamespaceWatch(100))
	case referred:
		return follow(ctx, clientset, s.Referred, true)
	case shared:
		return follow(ctx, clientset, s.Referred, true, refs.WithNamespaceWatch(1))
	case kubelet:
		return reflect(ctx, clientset, s.Names)
	case clientGo:
		factory := informers.NewSharedInformerFactory(clientset, 0)
		return inform(ctx, factory, factory.Core().V1().Secrets().Informer(), s.Secrets)
	case oneNode:
		nodes := refs.New(refs.FromClient[corev1.Node](clientset.CoreV1().RESTClient(), "nodes"))
		go func() { _ = nodes.Run(ctx) }()
		name := nodeOf(s.Nodes / 2).Name
		nodes.SetOwner("lookup", refs.In("", name))
		_, err := nodes.Get(ctx, "", name)
		return nodes, err
	case allNodes:
		factory := informers.NewSharedInformerFactory(clientset, 0)
		return inform(ctx, factory, factory.Core().V1().Nodes().Informer(), s.Nodes)
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

// loadOf asks for the server's figures since the last time.
func loadOf(address string) (l load, err error) {
	body, err := get(address + "/load")
	if err == nil {
		err = json.Unmarshal(body, &l)
	}
	l.Connections-- // this one
	return l, err
}

func get(url string) ([]byte, error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, body)
	}
	return body, err
}

// processor is the time that this process has used, in seconds.
func processor() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // cannot fail for the process itself
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
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
