package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apimachinery "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server/routine"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/cert"

	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/internal/self"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
)

// served is a cache behind HTTP, in a process of its own.
type served struct {
	Library string
	Pods    int
	TLS     bool
	Anew    bool // lists share no encodings
}

const usedPath = "/used"

// serve prints its URL, and serves until it is killed.
func serve(ctx context.Context, s served) error {
	var pods []*corev1.Pod
	for i := range s.Pods {
		p := world.Pods{PerSet: 50}.Pod(i, i, 0)
		p.Spec.NodeName = node(i)
		pods = append(pods, p)
	}
	var cacheOptions []watchcache.Option
	if s.Anew {
		cacheOptions = append(cacheOptions, watchcache.WithListBytes(0))
	}
	cache, err := newSubject(ctx, s.Library, pods, world.Version(s.Pods), cacheOptions...)
	if err != nil {
		return err
	}
	handler := http.NewServeMux()
	handler.HandleFunc(usedPath, func(w http.ResponseWriter, _ *http.Request) {
		u := used{PeakMB: peak(), CPU: userTime().Seconds(), System: systemTime().Seconds(), Goroutines: float64(runtime.NumGoroutine())}
		inUse() // a second collection shrinks what the first one could not
		heap, stacks := inUse()
		u.InUse, u.Resident = heap+stacks, resident()
		resetPeak()
		_ = json.NewEncoder(w).Encode(u)
	})
	handler.HandleFunc(writePath, writing(cache, pods))
	if theirs, ok := cache.(*theirs); ok {
		handler.Handle("/", theirs.handler())
	} else {
		server, err := apiserver.NewServer()
		if err != nil {
			return err
		}
		apiserver.ServeCache(server, cache.(ours).cache, builtin.Pods().View)
		handler.Handle("/", server)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	web := &http.Server{Handler: handler, Protocols: protocols}
	if s.TLS {
		certificate, err := selfSigned()
		if err != nil {
			return err
		}
		web.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	}
	if s.TLS {
		fmt.Println("https://" + listener.Addr().String())
		return web.ServeTLS(listener, "", "")
	}
	fmt.Println("http://" + listener.Addr().String())
	return web.Serve(listener)
}

func selfSigned() (tls.Certificate, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certificate, key)
}

// transport speaks one protocol. It believes any certificate: its server is on this machine.
func transport(http2 bool) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	protocols.SetUnencryptedHTTP2(http2)
	return &http.Transport{Protocols: protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
}

// start starts the server, and returns its URL, and a function that ends it and waits for its end:
// a process that outlived this one would hold its output open.
func (s served) start(ctx context.Context) (url string, stop func(), err error) {
	asked, err := json.Marshal(s)
	if err != nil {
		return "", nil, err
	}
	ctx, kill := context.WithCancel(ctx)
	cmd, err := self.Command(ctx, "serve", string(asked))
	if err != nil {
		kill()
		return "", nil, err
	}
	stop = func() { kill(); _ = cmd.Wait() }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		url, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		stop()
		return "", nil, err
	}
	return strings.TrimSuffix(url, "\n"), stop, nil
}

func get(ctx context.Context, client *http.Client, url, accept string) (*http.Response, error) {
	return getCoded(ctx, client, url, accept, "")
}

// getCoded asks for a content coding; empty leaves that to the transport.
func getCoded(ctx context.Context, client *http.Client, url, accept, coding string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	if coding != "" {
		r.Header.Set("Accept-Encoding", coding)
	}
	return client.Do(r)
}

// used is what a process uses.
type used struct {
	InUse      float64 // heap and stacks, in bytes
	Resident   float64 // in bytes
	PeakMB     float64 // resident, since the last answer
	CPU        float64 // user time, in seconds
	System     float64 // system time, in seconds
	Goroutines float64
}

// readUsed asks a server that [served.start] has started.
func readUsed(ctx context.Context, client *http.Client, url string) (u used, err error) {
	answer, err := get(ctx, client, url+usedPath, "")
	if err != nil {
		return u, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return u, err
	}
	return u, json.Unmarshal(text, &u)
}

// resident is the resident set, in bytes.
func resident() (bytes float64) {
	text, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(text), new(float64), &bytes)
	}
	if err != nil {
		panic(err)
	}
	return bytes * float64(os.Getpagesize())
}

// resetPeak makes the present resident set the largest. If the system cannot, the start counts,
// too.
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// handler serves the cacher by the API server's own handler of lists and watches, with the filters
// that it needs, and none of the others.
func (t *theirs) handler() http.Handler {
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	err := scheme.Scheme.AddFieldLabelConversionFunc(kind, func(label, value string) (string, string, error) { return label, value, nil })
	if err != nil {
		panic(err)
	}
	scope := &handlers.RequestScope{
		Namer:      handlers.ContextBasedNaming{Namer: apimachinery.Namer(meta.NewAccessor())},
		Serializer: scheme.Codecs, ParameterCodec: scheme.ParameterCodec,
		Creater: scheme.Scheme, Convertor: scheme.Scheme, Defaulter: scheme.Scheme, Typer: scheme.Scheme, UnsafeConvertor: scheme.Scheme,
		Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: kind,
		MetaGroupVersion: metav1.SchemeGroupVersion, HubGroupVersion: corev1.SchemeGroupVersion,
	}
	list := http.Handler(handlers.ListResource(nil, watcher{t}, scope, false, 0))
	list = routine.WithRoutine(list, func(*http.Request, *request.RequestInfo) bool { return true })
	return filters.WithRequestInfo(list, &request.RequestInfoFactory{
		APIPrefixes: sets.NewString("api"), GrouplessAPIPrefixes: sets.NewString("api"),
	})
}

// watcher has the cacher's watches in the form that the handler asks for.
type watcher struct{ *theirs }

var _ rest.Watcher = watcher{}

func (w watcher) Watch(ctx context.Context, o *internalversion.ListOptions) (watch.Interface, error) {
	return w.cacher.Watch(ctx, prefix, storage.ListOptions{
		ResourceVersion: o.ResourceVersion, Recursive: true,
		Predicate: predicate(o.FieldSelector, o.AllowWatchBookmarks),
	})
}
