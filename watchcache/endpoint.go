package watchcache

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/store"
)

// resourceEndpoint serves one resource.
type resourceEndpoint[T store.Object] struct {
	cache      *Cache[T]
	collection *Collection[T] // nil: read-only
	codec      codec[T]
}

func newEndpoint[T store.Object](cache *Cache[T], collection *Collection[T]) *resourceEndpoint[T] {
	return &resourceEndpoint[T]{
		cache: cache, collection: collection,
		codec: codec[T]{resource: cache.resource, columns: tableColumns(cache.resource)},
	}
}

func (e *resourceEndpoint[T]) protobuf() bool { return speaksProtobuf[T]() }

func (e *resourceEndpoint[T]) groupVersionResource() schema.GroupVersionResource {
	return e.cache.resource.groupResource().WithVersion(e.cache.resource.Version)
}

func (e *resourceEndpoint[T]) describe() []metav1.APIResource {
	r := e.cache.resource
	main := metav1.APIResource{
		Name: r.Plural, SingularName: strings.ToLower(r.Kind), ShortNames: r.ShortNames,
		Namespaced: !r.ClusterScoped, Kind: r.Kind, Verbs: metav1.Verbs{"get", "list", "watch"},
	}
	if e.collection == nil {
		return []metav1.APIResource{main}
	}
	main.Verbs = metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	if !e.hasStatus() {
		return []metav1.APIResource{main}
	}
	return []metav1.APIResource{main, {
		Name: r.Plural + "/" + status.key, Namespaced: !r.ClusterScoped, Kind: r.Kind,
		Verbs: metav1.Verbs{"get", "patch", "update"},
	}}
}

// hasStatus reports whether objects have a status to be written apart. A document may always have one.
func (e *resourceEndpoint[T]) hasStatus() bool {
	obj := newObject[T]()
	_, isDocument := any(obj).(runtime.Unstructured)
	_, ok := status.of(obj)
	return ok || isDocument
}

// serve routes a request by method and target.
func (e *resourceEndpoint[T]) serve(c call) error {
	if c.target.Namespace != "" && e.cache.resource.ClusterScoped {
		return notFound(c.request.URL.Path)
	}
	if c.target.Subresource != "" && (c.target.Subresource != status.key || !e.hasStatus()) {
		return notFound(c.request.URL.Path)
	}
	if c.request.Method == http.MethodGet {
		return e.serveRead(c)
	}
	if e.collection == nil {
		return e.notAllowed(c)
	}
	if c.query("dryRun") != "" {
		return badRequest("dryRun is not supported")
	}
	named, main := c.target.Name != "", c.target.Subresource == ""
	switch {
	case c.request.Method == http.MethodPost && !named:
		return e.serveCreate(c)
	case c.request.Method == http.MethodPut && named:
		return e.serveUpdate(c)
	case c.request.Method == http.MethodPatch && named:
		return e.servePatch(c)
	case c.request.Method == http.MethodDelete && named && main:
		return e.serveDelete(c)
	case c.request.Method == http.MethodDelete && !named:
		return e.serveDeleteCollection(c)
	}
	return e.notAllowed(c)
}

func (e *resourceEndpoint[T]) notAllowed(c call) error {
	return refused(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not allow "+c.request.Method+" on "+e.cache.resource.Plural)
}

// serveRead answers GET: one object, a list or a watch.
func (e *resourceEndpoint[T]) serveRead(c call) error {
	o, err := parseListOptions(c)
	if err != nil {
		return err
	}
	keep, err := e.cache.bind(o.selection(c.target))
	switch {
	case err != nil:
		return err
	case o.Watch:
		return e.serveWatch(c, o)
	case c.target.Name != "":
		return e.serveGet(c, o)
	}
	return e.serveList(c, o, keep)
}

// serveGet answers with one object, at the latest version or, as the API server does, no older than asked for.
func (e *resourceEndpoint[T]) serveGet(c call, o listOptions) error {
	now, err := e.cache.notOlderThan(c.request.Context(), o.version)
	if err != nil {
		return err
	}
	obj, ok := now.state.Get(e.cache.resource.key(c.target.Namespace, c.target.Name))
	if !ok {
		return e.missing(c.target.Name)
	}
	return e.respond(c, http.StatusOK, obj)
}

// respond answers with one object.
func (e *resourceEndpoint[T]) respond(c call, code int, obj T) error {
	doc, err := e.codec.object(c.format, obj)
	if err != nil {
		return err
	}
	respondBytes(c, c.format.contentType(false), code, doc)
	return nil
}
