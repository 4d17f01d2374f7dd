package apiserver

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/server/internal/object"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// resourceEndpoint serves one resource.
type resourceEndpoint[T store.Object] struct {
	cache      *watchcache.Cache[T]
	collection *collection.Collection[T] // nil: read-only
	view       View[T]
	hasStatus  bool
	codec      codec[T]
	empty      store.Object // tells in which formats objects can be written
	serving    serving
	scales     *resourceEndpoint[*autoscalingv1.Scale] // nil: there is no scale subresource
	owner      endpoint                                // of the objects; nil: this one

	ended context.Context // it is served no more, or the server is closed
	stop  context.CancelFunc
}

func newEndpoint[T store.Object](
	cache *watchcache.Cache[T], written *collection.Collection[T], view View[T], options []ServeOption,
) *resourceEndpoint[T] {
	e := &resourceEndpoint[T]{
		cache: cache, collection: written, view: view, empty: cache.Kind().Empty(),
		codec: codec[T]{kind: cache.Kind(), columns: tableColumns(view.Columns), served: cache.Kind().GroupVersionKind()},
	}
	if err := null.Options("apiserver: Serve", options, func(option ServeOption) { option(&e.serving) }); err != nil {
		panic(err.Error())
	}
	if e.hasStatus = object.HasStatus(e.empty); written != nil {
		e.hasStatus = written.HasStatus()
	}
	if e.serving.readOnly {
		e.collection = nil
	}
	e.scales = e.newScales()
	return e
}

func (e *resourceEndpoint[T]) begin(s *Server) {
	e.ended, e.stop = context.WithCancel(s.closed)
	k := newEmptier(s, e)
	if k == nil {
		return
	}
	e.cache.OnChange(func(event listwatch.Event[T]) {
		if event.Type != watch.Deleted {
			k.consider(event.Object)
		}
	})
	if !e.serving.owned { // it has another writer's objects
		s.running.Go(func() { k.look(e.ended) })
	}
}

func (e *resourceEndpoint[T]) replaces() bool { return e.serving.replaces }

func (e *resourceEndpoint[T]) end() { e.stop() }

func (e *resourceEndpoint[T]) release() {
	if e.serving.owned {
		e.cache.Close()
	}
}

func (e *resourceEndpoint[T]) sample() any {
	return e.empty
}

func (e *resourceEndpoint[T]) schema() *spec.Schema { return e.view.Schema }

func (e *resourceEndpoint[T]) groupVersionResource() schema.GroupVersionResource {
	return e.codec.served.GroupVersion().WithResource(e.cache.Kind().Plural)
}

func (e *resourceEndpoint[T]) describe() []described {
	kind := e.cache.Kind()
	main := metav1.APIResource{
		Name: kind.Plural, SingularName: cmp.Or(e.view.Singular, strings.ToLower(kind.Kind)), ShortNames: e.view.ShortNames,
		Categories: e.view.Categories, Namespaced: !kind.ClusterScoped, Kind: kind.Kind, Verbs: metav1.Verbs{"get", "list", "watch"},
	}
	if e.collection == nil {
		return []described{{APIResource: main}}
	}
	main.Verbs = metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	if _, isDocument := e.sample().(runtime.Unstructured); isDocument {
		main.Verbs = metav1.Verbs{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	}
	if e.groupVersionResource() == namespaces { // they are deleted one by one
		main.Verbs = slices.DeleteFunc(main.Verbs, func(verb string) bool { return verb == "deletecollection" })
	}
	all := []described{{APIResource: main}}
	version := e.codec.served.GroupVersion()
	for _, s := range e.view.Subresources {
		all = append(all, s.describe(main, version))
	}
	if e.scales != nil {
		all = append(all, describeScale(main))
	}
	if e.hasStatus {
		all = append(all, Subresource{Name: object.Status.Name(), AsStatus: true}.describe(main, version))
	}
	return all
}

// serve routes a request by method and target.
func (e *resourceEndpoint[T]) serve(c call) error {
	if c.target.Namespace != "" && e.cache.Kind().ClusterScoped {
		return notFound(c.request.URL.Path)
	}
	part, known := e.subresource(c.target.Subresource)
	switch {
	case known && part.AsStatus:
		c.target.Subresource = object.Status.Name()
	case known && e.collection != nil:
		return e.servePart(c, part)
	case e.scales != nil && c.target.Subresource == scaleName:
		return e.serveScale(c)
	}
	if c.target.Subresource != "" && (c.target.Subresource != object.Status.Name() || !e.hasStatus) {
		return notFound(c.request.URL.Path)
	}
	if c.request.Method == http.MethodGet {
		return e.serveRead(c)
	}
	if e.collection == nil {
		return e.notAllowed(c)
	}
	named, main := c.target.Name != "", c.target.Subresource == ""
	everywhere := c.target.Namespace == "" && !e.cache.Kind().ClusterScoped
	switch {
	case everywhere: // only reads span namespaces
	case c.request.Method == http.MethodPost && !named:
		return e.serveCreate(c)
	case c.request.Method == http.MethodPut && named:
		return e.serveUpdate(c)
	case c.request.Method == http.MethodPatch && named:
		return e.servePatch(c)
	case c.request.Method == http.MethodDelete && named && main:
		return e.serveDelete(c)
	case c.request.Method == http.MethodDelete && !named && c.target.Resource != namespaces:
		return e.serveDeleteCollection(c)
	}
	return e.notAllowed(c)
}

func (e *resourceEndpoint[T]) notAllowed(c call) error {
	return apierror.Refused(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not allow "+c.request.Method+" on "+e.cache.Kind().Plural)
}

// serveRead answers GET: one object, a list or a watch.
func (e *resourceEndpoint[T]) serveRead(c call) error {
	r, err := readRequest(c)
	if err == nil {
		err = e.serving.unreadable()
	}
	if err != nil {
		return err
	}
	e.warnIfStale(c, r)
	switch {
	case c.target.Name != "":
		return e.serveGet(c, r)
	case r.Watch:
		return e.serveWatch(c, r)
	}
	return e.serveList(c, r)
}

// serveGet answers with one object, at the latest version or, as the API server does, no older than
// asked for.
func (e *resourceEndpoint[T]) serveGet(c call, r watchcache.Request) error {
	obj, err := e.cache.Get(c.request.Context(), r)
	if err != nil {
		return err
	}
	return e.respond(c, http.StatusOK, obj)
}

// respond answers with one object.
func (e *resourceEndpoint[T]) respond(c call, code int, obj T) error {
	if c.as == manyMetadata {
		return notAcceptable("you requested PartialObjectMetadataList, but the requested object is not a list")
	}
	doc, err := e.codec.object(c.format, obj)
	if err != nil {
		return err
	}
	respondBytes(c, c.format.contentType(false), code, doc)
	return nil
}
