package main

import (
	"context"
	"net/http"

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

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
)

// served is a cache behind HTTP, in a process of its own.
type served struct {
	Library string
	HTTP2   bool
	Pods    int
	TLS     bool
	Anew    bool // lists share no encodings
}

// serve is the process of a cache behind HTTP.
func serve(ctx context.Context, s served) {
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
	cache := newSubject(ctx, s.Library, pods, world.Version(s.Pods), cacheOptions...)
	handler := harness.Control(nil, map[string]func(*http.Request) any{
		"/write": func(r *http.Request) any { write(cache, pods, harness.Number(r, "n")); return nil },
	})
	if theirs, ok := cache.(*theirs); ok {
		handler.Handle("/", theirs.handler())
	} else {
		server := harness.Must(apiserver.NewServer())
		apiserver.ServeCache(server, cache.(ours).cache, builtin.Pods().View)
		handler.Handle("/", server)
	}
	harness.Serving{TLS: s.TLS}.Say(ctx, handler, nil)
}

// protocol is the name of one.
func (s served) protocol() string {
	protocol := "HTTP/1.1"
	if s.HTTP2 {
		protocol = "HTTP/2"
	}
	if s.TLS {
		protocol += " with TLS"
	}
	return protocol
}

// handler serves the cacher by the API server's own handler of lists and watches, with the filters
// that it needs, and none of the others.
func (t *theirs) handler() http.Handler {
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	harness.Check(scheme.Scheme.AddFieldLabelConversionFunc(kind, func(label, value string) (string, string, error) { return label, value, nil }))
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
