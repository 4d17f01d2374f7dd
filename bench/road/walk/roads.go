// The command walk takes the roads for the command road, which builds it with coverage.
//
//	walk              # the roads: a name and a description in each line
//	walk NAME FOLDER  # takes one road, and writes the counters of each event into a folder of its own
package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/coverage"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/store"
)

// road is a way that an event takes. begin follows the collection, calls told with the resource
// version of each event, and returns a function that sends the next state of a pod.
type road struct {
	name, what string
	begin      func(ctx context.Context, told func(resourceVersion string)) (send func(*corev1.Pod))
}

var roads = []road{
	{"handler", "watch over HTTP to an informer's handler", toHandler},
	{"update", "watch over HTTP to a sources PodUpdate", toUpdate},
	{"next", "watch cache, Update to Next", toNext},
	{"watch", "watch cache, Update to the bytes of an HTTP watch", toWatch},
	{"client-go", "watch over HTTP to the handler of client-go's informer", toClientGo},
}

func main() {
	sharing.FirstBytes = 0 // the road of a collection that is not small
	if len(os.Args) != 3 {
		for _, r := range roads {
			fmt.Printf("%s %s\n", r.name, r.what)
		}
		return
	}
	if err := harness.Try(func() { walk(context.Background(), os.Args[1], os.Args[2]) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	warm   = 6 // events before the first that is counted
	events = 6 // that are counted
	// settle is the time after which nothing of an event runs any more, though its receiver was
	// told.
	settle   = 60 * time.Millisecond
	patience = 20 * time.Second
	node     = "node-1"
)

// ofNode selects the pods.
var ofNode = fields.OneTermEqualSelector("spec.nodeName", node)

// walk takes a road, and writes the counters of each event into a folder of its own.
func walk(ctx context.Context, name, folder string) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	seen := make(chan string, 2*len(pods()))
	at := slices.IndexFunc(roads, func(r road) bool { return r.name == name })
	send := roads[at].begin(ctx, func(resourceVersion string) { seen <- resourceVersion })
	time.Sleep(settle)
	for i := -warm; i < events; i++ {
		next := podAt(i)
		harness.Check(coverage.ClearCounters())
		send(next)
		await(seen, next.ResourceVersion)
		time.Sleep(settle)
		if i >= 0 {
			of := filepath.Join(folder, fmt.Sprint(i))
			harness.Check(os.MkdirAll(of, 0o700))
			harness.Check(coverage.WriteMetaDir(of))
			harness.Check(coverage.WriteCountersDir(of))
		}
	}
}

func await(seen <-chan string, resourceVersion string) {
	late := time.After(patience)
	for {
		select {
		case got := <-seen:
			if got == resourceVersion {
				return
			}
		case <-late:
			harness.Fail("the event has not arrived: %s", resourceVersion)
		}
	}
}

// pod is a pod with three containers; ready is the part of its state that changes.
func pod(i int, resourceVersion string, ready bool) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("web-", i), Namespace: "default", ResourceVersion: resourceVersion,
			UID:    []types.UID{"1c3a7d14-0000-4000-a000-000000000000", "1c3a7d14-0000-4000-a000-000000000001"}[i],
			Labels: map[string]string{"app": "web", "tier": "front"},
		},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for c := range 3 {
		container := corev1.Container{Name: fmt.Sprint("container-", c), Image: "registry.example.com/app:v1"}
		for e := range 10 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", e), Value: "the value of a variable, in some words"})
		}
		p.Spec.Containers = append(p.Spec.Containers, container)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: container.Name, Image: container.Image, Ready: ready})
	}
	return p
}

// pods are the collection before the first event.
func pods() []*corev1.Pod { return []*corev1.Pod{pod(0, "5", false), pod(1, "6", false)} }

// podAt is the state of the first pod that event number i sends.
func podAt(i int) *corev1.Pod { return pod(0, fmt.Sprint(100+i), i%2 == 0) }

// serve is an API server of the collection that sends prepared bytes, so that it runs none of the
// code that is counted. It has no watch lists. It returns how a client finds it, and how an event
// is sent.
func serve() (*rest.Config, func(*corev1.Pod)) {
	codec := world.Codec{Form: world.Protobuf, Kind: "Pod", Version: corev1.SchemeGroupVersion, Resource: "pods"}
	var items [][]byte
	for _, p := range pods() {
		items = append(items, harness.Must(p.Marshal()))
	}
	state := world.State{Codec: codec, Items: slices.Values(items), Version: "10"}
	frames := map[string][]byte{}
	for i := -warm; i < events; i++ {
		var frame bytes.Buffer
		p := podAt(i)
		codec.Event(&frame, watch.Modified, harness.Must(p.Marshal()))
		frames[p.ResourceVersion] = frame.Bytes()
	}
	sent := make(chan []byte)
	url := harness.Serving{}.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
			return
		}
		state.Send(w, r, func(on world.Stream) bool {
			for {
				select {
				case frame := <-sent:
					_, _ = on.Write(frame)
					on.Flush()
				case <-r.Context().Done():
					return false
				}
			}
		})
	}))
	config := &rest.Config{Host: url, ContentConfig: rest.ContentConfig{ContentType: harness.Protobuf, AcceptContentTypes: harness.Protobuf}}
	return config, func(p *corev1.Pod) { sent <- frames[p.ResourceVersion] }
}

func toHandler(ctx context.Context, told func(string)) func(*corev1.Pod) {
	config, send := serve()
	client := harness.Must(listwatch.NewRESTClient(config, corev1.SchemeGroupVersion))
	pods := informer.New(listwatch.FromClient[corev1.Pod](client, "pods", listwatch.Fields(ofNode)))
	h := harness.Must(pods.AddHandler(func(e informer.Event[*corev1.Pod]) { told(e.New.ResourceVersion) }))
	go pods.Run(ctx)
	harness.Check(h.WaitSynced(ctx))
	return send
}

func toUpdate(ctx context.Context, told func(string)) func(*corev1.Pod) {
	config, send := serve()
	all := sources.New(node, sources.APIServer(harness.Must(listwatch.NewRESTClient(config, corev1.SchemeGroupVersion))))
	go all.Run(ctx)
	go func() {
		for update := range all.Updates() {
			for _, p := range update.Pods {
				told(p.ResourceVersion)
			}
		}
	}()
	<-all.Synced()
	return send
}

// filled is a watch cache with the collection.
func filled() *watchcache.Cache[*corev1.Pod] {
	cache := harness.Must(watchcache.NewCache(watchcache.Pods()))
	harness.Check(cache.Replace(store.Items(pods()...), store.At("10")))
	return cache
}

func toNext(ctx context.Context, told func(string)) func(*corev1.Pod) {
	cache := filled()
	options := internalversion.ListOptions{ResourceVersion: "10", FieldSelector: ofNode}
	watcher := harness.Must(cache.Watcher(watchcache.Request{ListOptions: options}))
	go func() {
		defer watcher.Close()
		for {
			batch, err := watcher.Next(ctx)
			if err != nil {
				return
			}
			for _, d := range batch {
				told(d.Object.ResourceVersion)
			}
		}
	}()
	return func(p *corev1.Pod) { harness.Check(cache.Update(p)) }
}

func toWatch(ctx context.Context, told func(string)) func(*corev1.Pod) {
	cache, server := filled(), harness.Must(apiserver.NewServer())
	apiserver.ServeCache(server, cache, builtin.Pods().View)
	url := harness.Serving{}.Serve(server) + "/api/v1/pods?watch=1&resourceVersion=10&fieldSelector=spec.nodeName%3D" + node
	body := harness.Get(ctx, http.DefaultClient, url, "Accept", harness.Protobuf)
	awaited := make(chan string, 1)
	go func() {
		_ = harness.ReadFrames(body, func(frame []byte) bool {
			if version := <-awaited; bytes.Contains(frame, []byte(version)) {
				told(version)
			}
			return true
		})
	}()
	return func(p *corev1.Pod) { awaited <- p.ResourceVersion; harness.Check(cache.Update(p)) }
}

func toClientGo(ctx context.Context, told func(string)) func(*corev1.Pod) {
	config, send := serve()
	source := cache.NewFilteredListWatchFromClient(harness.RESTClient(config, corev1.SchemeGroupVersion), "pods", metav1.NamespaceAll,
		func(o *metav1.ListOptions) { o.FieldSelector = ofNode.String() })
	informer := cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, cache.Indexers{})
	harness.Must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, obj any) { told(obj.(*corev1.Pod).ResourceVersion) },
	}))
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		harness.Fail("client-go's informer did not sync")
	}
	return send
}
