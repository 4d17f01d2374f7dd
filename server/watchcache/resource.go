package watchcache

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/server/internal/object"
	"github.com/tributary-go/tributary/store"
)

// Resource describes a collection: under which names it is served, which of its fields can be
// selected, how it is shown and how it ends. [Pods] and [Core] make the usual ones.
type Resource[T store.Object] struct {
	// Group is the API group; empty for the core group, which is served under /api.
	Group string
	// Version is the API version, such as "v1". T must be the Go type of that version: nothing is
	// converted.
	Version string
	// Plural is the name in paths, such as "pods".
	Plural string
	// Kind is the kind of one object, such as "Pod"; a list is of kind Kind+"List".
	Kind string
	// Singular is the name of one object, such as "pod". Empty means Kind in lower case.
	Singular string
	// ShortNames are further names that kubectl takes, such as "po".
	ShortNames []string
	// Categories are the groups of resources that kubectl takes as one name, such as "all".
	Categories []string
	// ClusterScoped says that objects have no namespace.
	ClusterScoped bool

	// New makes an empty object. Nil, the default, makes one of the struct that T points to. Set it
	// if T is an interface: collections of many kinds then share one Go type, and their code is
	// compiled once.
	New func() T

	// Fields are the field labels that selectors may use, beside metadata.name and
	// metadata.namespace.
	Fields []Field[T]
	// Columns are the columns of a table (kubectl get). None means name and age.
	Columns []Column[T]
	// GracePeriod is how many seconds an object that is deleted without a period of the caller's
	// stays, marked as terminating, until its owner removes it. Zero means that it goes at once,
	// whatever the caller asks for. A nil GracePeriod is for kinds without graceful deletion, which
	// is all but pods.
	GracePeriod func(obj T) int64
	// Rules are what the API server does with writes of this kind alone.
	Rules Rules[T]
	// Schema describes one object in OpenAPI v3, as the API server publishes it: its metadata is a
	// reference to ObjectMeta. Nil, the default, is for the kinds of client-go, and for kinds
	// without a schema.
	Schema *spec.Schema
	// Scale says where objects have their replicas; nil means that they cannot be scaled.
	Scale *Scale
}

// Scale is where the objects of a kind have what the scale subresource shows. A path is the names
// of fields from the root on.
type Scale struct {
	// SpecReplicas is the path of the wanted number.
	SpecReplicas []string
	// StatusReplicas is the path of the number that there is.
	StatusReplicas []string
	// Selector is the path of the label selector of what is counted: a query string, a map of
	// labels or a LabelSelector. Nil means none.
	Selector []string
}

// Field is a label that field selectors may use.
type Field[T store.Object] struct {
	// Label is the name in selectors, such as "spec.nodeName".
	Label string
	// Value computes the field. It must be a pure function of the object.
	Value func(obj T) string
	// Indexed makes lists by equality on this field cost what they return, for about 50 bytes per
	// object.
	Indexed bool
}

// Core describes a namespaced resource of the core group at version v1, without fields of its own.
func Core[T store.Object](plural, kind string) Resource[T] {
	return Resource[T]{Version: "v1", Plural: plural, Kind: kind}
}

// GroupResource names the resource, as errors do.
func (r Resource[T]) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// GroupVersionResource names the resource in one version, as paths do.
func (r Resource[T]) GroupVersionResource() schema.GroupVersionResource {
	return r.GroupResource().WithVersion(r.Version)
}

// GroupVersionKind is the kind of one object.
func (r Resource[T]) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// Key is the store key of an object. The namespace of a cluster-scoped one is ignored.
func (r Resource[T]) Key(namespace, name string) string {
	if r.ClusterScoped {
		namespace = ""
	}
	return store.Key(namespace, name)
}

// validate reports what is missing in a description.
func (r Resource[T]) validate() error {
	for name, value := range map[string]string{"Version": r.Version, "Plural": r.Plural, "Kind": r.Kind} {
		if value == "" {
			return fmt.Errorf("watchcache: the resource has no %s: set it", name)
		}
	}
	for _, f := range r.Fields {
		if f.Label == "" || f.Value == nil {
			return fmt.Errorf("watchcache: resource %s: a field needs a Label and a Value", r.Plural)
		}
	}
	return nil
}

// SetKind gives obj the type information that a stored object has. A document gets the kind of the
// resource. A Go type gets none: it knows what it is, and decoded protobuf has none either.
func (r Resource[T]) SetKind(obj T) {
	kind := schema.GroupVersionKind{}
	if _, ok := any(obj).(runtime.Unstructured); ok {
		kind = r.GroupVersionKind()
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
}

// Empty makes an empty object.
func (r Resource[T]) Empty() T {
	if r.New != nil {
		return r.New()
	}
	return object.New[T]()
}

// Bookmark is an object that carries nothing but a resource version, as a BOOKMARK event has it on
// the wire.
func (r Resource[T]) Bookmark(resourceVersion string, initialEventsEnd bool) T {
	obj := r.Empty()
	r.SetKind(obj)
	obj.SetResourceVersion(resourceVersion)
	if initialEventsEnd {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return obj
}

// HasStatus reports whether objects have a status that is written apart. A document has one unless
// its rules say otherwise.
func (r Resource[T]) HasStatus() bool {
	if r.Rules.PlainStatus {
		return false
	}
	obj := r.Empty()
	_, isDocument := any(obj).(runtime.Unstructured)
	_, ok := object.Status.Of(obj)
	return ok || isDocument
}

// Place puts an object without a namespace into the given one. Another namespace of its own is a
// 400 error. A cluster-scoped object has none.
func (r Resource[T]) Place(namespace string, obj T) error {
	if r.ClusterScoped {
		obj.SetNamespace("")
		return nil
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(namespace)
	}
	if obj.GetNamespace() != namespace {
		return apierror.BadRequest("the namespace of the object (%s) does not match the namespace on the URL (%s)",
			obj.GetNamespace(), namespace)
	}
	return nil
}
