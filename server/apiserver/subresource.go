package apiserver

import (
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/store"
)

// Subresource is a part of an object with a path of its own behind the object's name, such as the
// eviction of a pod. A client creates or updates it; the server acts on the object, and stores no
// subresource.
type Subresource struct {
	// Name is the last part of the path, such as "eviction".
	Name string
	// AsStatus has the subresource read and written like the status, such as the approval of a
	// certificate. The other fields are then not used.
	AsStatus bool
	// Kind is the kind of the body that a client sends.
	Kind schema.GroupVersionKind
	// New makes an empty body.
	New func() store.Object
	// Create acts on the object, and returns the body of the answer. Nil stands for a Status that
	// tells of success. Errors are API status errors.
	Create func(Creation) (answer store.Object, err error)
	// Update is Create for a subresource that is updated instead, such as the finalizers of a
	// namespace.
	Update func(Creation) (answer store.Object, err error)
}

// Creation is a client's request to create or update a [Subresource].
type Creation struct {
	// Server is the server that was asked.
	Server *Server
	// Resource is the resource of the object.
	Resource schema.GroupVersionResource
	// Body is the client's. Its namespace and name are those of the object.
	Body store.Object
	// Options are for writes to the object.
	Options collection.WriteOptions
}

// NotFound is the 404 for an object that is not there, or nil.
func (c Creation) NotFound() error {
	if e := c.Server.endpoint(c.Resource); e != nil {
		if found, _ := e.state(c.Body.GetNamespace(), c.Body.GetName()); found {
			return nil
		}
	}
	return apierrors.NewNotFound(c.Resource.GroupResource(), c.Body.GetName())
}

// CollectionOf returns the collection of a resource; nil if the server does not serve it, or not as
// a T, or read-only.
func CollectionOf[T store.Object](s *Server, resource schema.GroupVersionResource) *collection.Collection[T] {
	if e, ok := s.endpoint(resource).(*resourceEndpoint[T]); ok {
		return e.collection
	}
	return nil
}

// subresource finds a subresource that the view has.
func (e *resourceEndpoint[T]) subresource(name string) (Subresource, bool) {
	i := slices.IndexFunc(e.view.Subresources, func(s Subresource) bool { return s.Name == name })
	if i < 0 {
		return Subresource{}, false
	}
	return e.view.Subresources[i], true
}

// describe is the subresource in discovery and OpenAPI.
func (s Subresource) describe(of metav1.APIResource, version schema.GroupVersion) described {
	d := described{APIResource: metav1.APIResource{
		Name: of.Name + "/" + s.Name, Namespaced: of.Namespaced, Kind: of.Kind, Verbs: metav1.Verbs{"get", "patch", "update"},
	}}
	if s.AsStatus {
		return d
	}
	d.Kind, d.Verbs, d.body, d.bodyKind = s.Kind.Kind, metav1.Verbs{"create"}, s.New(), s.Kind
	if s.Update != nil {
		d.Verbs = metav1.Verbs{"update"}
	}
	if s.Kind.GroupVersion() != version {
		d.Group, d.Version = s.Kind.Group, s.Kind.Version
	}
	return d
}

// servePart answers POST or PUT to a subresource.
func (e *resourceEndpoint[T]) servePart(c call, s Subresource) error {
	method, act, options, code := http.MethodPost, s.Create, createOptions, http.StatusCreated
	if s.Update != nil {
		method, act, options, code = http.MethodPut, s.Update, updateOptions, http.StatusOK
	}
	if c.request.Method != method {
		return e.notAllowed(c)
	}
	o, err := options(c)
	if err != nil {
		return err
	}
	body := s.New()
	if err := readPart(c, body); err != nil {
		return err
	}
	answer, err := act(Creation{Server: c.server, Resource: c.target.Resource, Body: body, Options: o})
	switch {
	case err != nil:
		return err
	case answer == nil:
		respondStatus(c, c.format, &metav1.Status{
			TypeMeta: typeMeta("Status", "v1"), Status: metav1.StatusSuccess, Code: int32(code),
		})
		return nil
	}
	answer = answer.DeepCopyObject().(store.Object) // it may be a stored one
	answer.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	doc, err := c.format.document(typeMeta(s.Kind.Kind, s.Kind.GroupVersion().String()), answer)
	if err != nil {
		return err
	}
	respondBytes(c, c.format.contentType(false), code, doc)
	return nil
}

// readPart reads the body of a subresource, which names the object or nothing.
func readPart(c call, into store.Object) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	if _, _, err := decode(bodyType(c), body, into, false); err != nil {
		return err
	}
	if into.GetName() != "" && into.GetName() != c.target.Name {
		return apierror.OtherName(into.GetName(), c.target.Name)
	}
	into.SetName(c.target.Name)
	into.SetNamespace(c.target.Namespace)
	return nil
}
