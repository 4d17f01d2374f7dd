// The command walk takes the roads for the command road, which builds it with coverage.
//
//	walk              # the roads: a name and a description in each line
//	walk NAME FOLDER  # takes one road, and writes the counters of each event into a folder of its own
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/coverage"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

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
	begin      func(ctx context.Context, told func(resourceVersion string)) (send func(*corev1.Pod) error, err error)
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
	if err := walk(context.Background(), os.Args[1], os.Args[2]); err != nil {
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

// walk takes a road, and writes the counters of each event into a folder of its own.
func walk(ctx context.Context, name, folder string) error {
	at := slices.IndexFunc(roads, func(r road) bool { return r.name == name })
	if at < 0 {
		return fmt.Errorf("there is no road %q", name)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	seen := make(chan string, 2*len(pods()))
	send, err := roads[at].begin(ctx, func(resourceVersion string) { seen <- resourceVersion })
	if err != nil {
		return err
	}
	time.Sleep(settle)
	for i := -warm; i < events; i++ {
		next := pod(0, fmt.Sprint(100+i), i%2 == 0)
		if err := coverage.ClearCounters(); err != nil {
			return err
		}
		if err := send(next); err != nil {
			return err
		}
		if err := await(seen, next.ResourceVersion); err != nil {
			return err
		}
		time.Sleep(settle)
		if i >= 0 {
			if err := writeCounters(filepath.Join(folder, fmt.Sprint(i))); err != nil {
				return err
			}
		}
	}
	return nil
}

func await(seen <-chan string, resourceVersion string) error {
	late := time.After(patience)
	for {
		select {
		case got := <-seen:
			if got == resourceVersion {
				return nil
			}
		case <-late:
			return errors.New("the event has not arrived: " + resourceVersion)
		}
	}
}

func writeCounters(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return errors.Join(coverage.WriteMetaDir(folder), coverage.WriteCountersDir(folder))
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
func pods() []corev1.Pod { return []corev1.Pod{*pod(0, "5", false), *pod(1, "6", false)} }

const mediaType = "application/vnd.kubernetes.protobuf"

// origin is an API server of one collection that sends prepared bytes, so that it runs none of the
// code that is counted.
type origin struct {
	list []byte
	sent chan []byte // frames of the open watch
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch query := r.URL.Query(); {
	case query.Get("sendInitialEvents") != "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case query.Get("watch") == "":
		w.Header().Set("Content-Type", mediaType)
		_, _ = w.Write(o.list)
	default:
		w.Header().Set("Content-Type", mediaType+";stream=watch")
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case frame := <-o.sent:
				_, _ = w.Write(frame)
			case <-r.Context().Done():
				return
			}
		}
	}
}

// serve starts an origin, and returns how a client finds it, and how a pod's event is sent.
func serve(ctx context.Context) (*rest.Config, func(*corev1.Pod) error, error) {
	list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}, Items: pods()}
	content, err := list.Marshal()
	if err != nil {
		return nil, nil, err
	}
	o := &origin{list: enveloped("PodList", content), sent: make(chan []byte)}
	server := httptest.NewServer(o)
	context.AfterFunc(ctx, server.Close)
	frames := map[string][]byte{}
	for i := -warm; i < events; i++ {
		p := pod(0, fmt.Sprint(100+i), i%2 == 0)
		content, err := p.Marshal()
		if err != nil {
			return nil, nil, err
		}
		event := metav1.WatchEvent{Type: "MODIFIED"}
		event.Object.Raw = enveloped("Pod", content)
		frame, err := event.Marshal()
		if err != nil {
			return nil, nil, err
		}
		frames[p.ResourceVersion] = append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
	}
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: mediaType, AcceptContentTypes: mediaType}}
	return config, func(p *corev1.Pod) error { o.sent <- frames[p.ResourceVersion]; return nil }, nil
}

// enveloped is an object as the API server sends it in protobuf.
func enveloped(kind string, content []byte) []byte {
	object := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: content}
	encoded, err := object.Marshal()
	if err != nil {
		panic(err) // it has nothing that can fail
	}
	return append([]byte("k8s\x00"), encoded...)
}

// serveClient serves, and returns the client of one of our readers.
func serveClient(ctx context.Context) (rest.Interface, func(*corev1.Pod) error, error) {
	config, send, err := serve(ctx)
	if err != nil {
		return nil, nil, err
	}
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	return client, send, err
}

func toHandler(ctx context.Context, told func(string)) (func(*corev1.Pod) error, error) {
	client, send, err := serveClient(ctx)
	if err != nil {
		return nil, err
	}
	pods := informer.New(listwatch.FromClient[corev1.Pod](client, "pods", listwatch.Fields(fields.OneTermEqualSelector("spec.nodeName", node))))
	h, err := pods.AddHandler(func(e informer.Event[*corev1.Pod]) { told(e.New.ResourceVersion) })
	if err != nil {
		return nil, err
	}
	go pods.Run(ctx)
	return send, h.WaitSynced(ctx)
}

func toUpdate(ctx context.Context, told func(string)) (func(*corev1.Pod) error, error) {
	client, send, err := serveClient(ctx)
	if err != nil {
		return nil, err
	}
	all := sources.New(node, sources.APIServer(client))
	go all.Run(ctx)
	go func() {
		for update := range all.Updates() {
			for _, p := range update.Pods {
				told(p.ResourceVersion)
			}
		}
	}()
	select {
	case <-all.Synced():
		return send, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// filled is a watch cache with the collection.
func filled() (*watchcache.Cache[*corev1.Pod], error) {
	cache, err := watchcache.NewCache(watchcache.Pods())
	if err != nil {
		return nil, err
	}
	var content []*corev1.Pod
	for _, p := range pods() {
		content = append(content, &p)
	}
	return cache, cache.Replace(store.Items(content...), store.At("10"))
}

func toNext(ctx context.Context, told func(string)) (func(*corev1.Pod) error, error) {
	cache, err := filled()
	if err != nil {
		return nil, err
	}
	options := internalversion.ListOptions{ResourceVersion: "10", FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node)}
	watcher, err := cache.Watcher(watchcache.Request{ListOptions: options})
	if err != nil {
		return nil, err
	}
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
	return cache.Update, nil
}

func toWatch(ctx context.Context, told func(string)) (func(*corev1.Pod) error, error) {
	cache, err := filled()
	if err != nil {
		return nil, err
	}
	server, err := apiserver.NewServer()
	if err != nil {
		return nil, err
	}
	apiserver.ServeCache(server, cache, builtin.Pods().View)
	web := httptest.NewServer(server)
	context.AfterFunc(ctx, web.Close)
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+"/api/v1/pods?watch=1&resourceVersion=10&fieldSelector=spec.nodeName%3D"+node, nil)
	if err != nil {
		return nil, err
	}
	asked.Header.Set("Accept", mediaType)
	answer, err := http.DefaultClient.Do(asked)
	if err != nil {
		return nil, err
	}
	awaited := make(chan string, 1)
	go readFrames(answer.Body, func(frame []byte) {
		if version := <-awaited; bytes.Contains(frame, []byte(version)) {
			told(version)
		}
	})
	return func(p *corev1.Pod) error { awaited <- p.ResourceVersion; return cache.Update(p) }, nil
}

// readFrames reads the frames of a watch until it ends.
func readFrames(body io.ReadCloser, read func(frame []byte)) {
	defer body.Close()
	in := bufio.NewReader(body)
	for {
		var length [4]byte
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(in, frame); err != nil {
			return
		}
		read(frame)
	}
}

func toClientGo(ctx context.Context, told func(string)) (func(*corev1.Pod) error, error) {
	config, send, err := serve(ctx)
	if err != nil {
		return nil, err
	}
	// The clientset's client, without the types of all other groups.
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config.GroupVersion, config.APIPath = &corev1.SchemeGroupVersion, "/api"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	source := cache.NewFilteredListWatchFromClient(client, "pods", metav1.NamespaceAll,
		func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName=" + node })
	informer := cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, cache.Indexers{})
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, obj any) { told(obj.(*corev1.Pod).ResourceVersion) },
	})
	if err != nil {
		return nil, err
	}
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, context.Cause(ctx)
	}
	return send, nil
}
