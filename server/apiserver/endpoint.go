package apiserver

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

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
	codec      codec[T]
	empty      T // tells in which formats objects can be written
	serving    serving
	scales     *resourceEndpoint[*autoscalingv1.Scale] // nil: there is no scale subresource

	ended context.Context // it is served no more, or the server is closed
	stop  context.CancelFunc
}

func newEndpoint[T store.Object](cache *watchcache.Cache[T], written *collection.Collection[T], options []ServeOption) *resourceEndpoint[T] {
	e := &resourceEndpoint[T]{
		cache: cache, collection: written, empty: cache.Resource().Empty(),
		codec: codec[T]{resource: cache.Resource(), columns: tableColumns(cache.Resource())},
	}
	for _, option := range options {
		option(&e.serving)
	}
	e.scales = e.newScales()
	return e
}

func (e *resourceEndpoint[T]) begin(closed context.Context) {
	e.ended, e.stop = context.WithCancel(closed)
}

func (e *resourceEndpoint[T]) replaces() bool { return e.serving.replaces }

func (e *resourceEndpoint[T]) end() { e.stop() }

func (e *resourceEndpoint[T]) sample() any {
	return e.empty
}

func (e *resourceEndpoint[T]) schema() *spec.Schema { return e.cache.Resource().Schema }

func (e *resourceEndpoint[T]) groupVersionResource() schema.GroupVersionResource {
	return e.cache.Resource().GroupVersionResource()
}

func (e *resourceEndpoint[T]) describe() []metav1.APIResource {
	r := e.cache.Resource()
	main := metav1.APIResource{
		Name: r.Plural, SingularName: cmp.Or(r.Singular, strings.ToLower(r.Kind)), ShortNames: r.ShortNames, Categories: r.Categories,
		Namespaced: !r.ClusterScoped, Kind: r.Kind, Verbs: metav1.Verbs{"get", "list", "watch"},
	}
	all := []metav1.APIResource{main}
	if e.collection == nil {
		return all
	}
	all[0].Verbs = metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	if _, isDocument := e.sample().(runtime.Unstructured); isDocument {
		all[0].Verbs = metav1.Verbs{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	}
	if _, ok := e.pods(); ok {
		all = append(all, describePodSubresources()...)
	}
	if e.scales != nil {
		all = append(all, describeScale(r.Plural, !r.ClusterScoped))
	}
	switch r.Kind {
	case requestKind:
		all = append(all, metav1.APIResource{
			Name: r.Plural + "/" + approvalName, Kind: r.Kind, Verbs: metav1.Verbs{"get", "patch", "update"},
		})
	case accountKind:
		all = append(all, describeToken(r.Plural))
	}
	if r.HasStatus() {
		all = append(all, metav1.APIResource{
			Name: r.Plural + "/" + object.Status.Name(), Namespaced: !r.ClusterScoped, Kind: r.Kind,
			Verbs: metav1.Verbs{"get", "patch", "update"},
		})
	}
	return all
}

// pods is the collection if it is one of pods that can be written.
func (e *resourceEndpoint[T]) pods() (pods *collection.Collection[*corev1.Pod], ok bool) {
	pods, ok = any(e.collection).(*collection.Collection[*corev1.Pod])
	return pods, ok && pods != nil
}

// serve routes a request by method and target.
func (e *resourceEndpoint[T]) serve(c call) error {
	if c.target.Namespace != "" && e.cache.Resource().ClusterScoped {
		return notFound(c.request.URL.Path)
	}
	if pods, ok := e.pods(); ok && podSubresources[c.target.Subresource] != nil {
		if c.request.Method != http.MethodPost {
			return e.notAllowed(c)
		}
		return servePodSubresource(c, pods)
	}
	switch kind, part := e.cache.Resource().Kind, c.target.Subresource; {
	case kind == requestKind && part == approvalName:
		c.target.Subresource = object.Status.Name()
	case kind == accountKind && part == tokenName && e.collection != nil:
		return e.serveToken(c)
	}
	if e.scales != nil && c.target.Subresource == scaleName {
		return e.serveScale(c)
	}
	if c.target.Subresource != "" && (c.target.Subresource != object.Status.Name() || !e.cache.Resource().HasStatus()) {
		return notFound(c.request.URL.Path)
	}
	if c.request.Method == http.MethodGet {
		return e.serveRead(c)
	}
	if e.collection == nil {
		return e.notAllowed(c)
	}
	named, main := c.target.Name != "", c.target.Subresource == ""
	everywhere := c.target.Namespace == "" && !e.cache.Resource().ClusterScoped
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
	case c.request.Method == http.MethodDelete && !named:
		return e.serveDeleteCollection(c)
	}
	return e.notAllowed(c)
}

func (e *resourceEndpoint[T]) notAllowed(c call) error {
	return apierror.Refused(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not allow "+c.request.Method+" on "+e.cache.Resource().Plural)
}

// serveRead answers GET: one object, a list or a watch.
func (e *resourceEndpoint[T]) serveRead(c call) error {
	r, err := readRequest(c)
	if err != nil {
		return err
	}
	e.warnIfStale(c)
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
	doc, err := e.codec.object(c.format, obj)
	if err != nil {
		return err
	}
	respondBytes(c, c.format.contentType(false), code, doc)
	return nil
}
