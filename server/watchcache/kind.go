package watchcache

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/server/internal/object"
	"github.com/tributary-go/tributary/store"
)

// Kind describes the objects of a cache: their names in the API, and the fields by which watches
// are told apart. [Pods] is the kind that is watched most.
type Kind[T store.Object] struct {
	// Group is the API group; empty for the core group, which is served under /api.
	Group string
	// Version is the API version, such as "v1". T must be the Go type of that version: nothing is
	// converted.
	Version string
	// Plural is the name of the resource in paths, such as "pods".
	Plural string
	// Kind is the kind of one object, such as "Pod"; a list is of kind Kind+"List".
	Kind string
	// ClusterScoped says that objects have no namespace.
	ClusterScoped bool

	// New makes an empty object. Nil, the default, makes one of the struct that T points to. Set it
	// if T is an interface: collections of many kinds then share one Go type, and their code is
	// compiled once.
	New func() T

	// Fields are the field labels that selectors may use, beside metadata.name and
	// metadata.namespace.
	Fields []Field[T]
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

// GroupResource names the resource, as errors do.
func (k Kind[T]) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Plural}
}

// GroupVersionResource names the resource in one version, as paths do.
func (k Kind[T]) GroupVersionResource() schema.GroupVersionResource {
	return k.GroupResource().WithVersion(k.Version)
}

// GroupVersionKind is the kind of one object.
func (k Kind[T]) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

// Key is the store key of an object. The namespace of a cluster-scoped one is ignored.
func (k Kind[T]) Key(namespace, name string) string {
	if k.ClusterScoped {
		namespace = ""
	}
	return store.Key(namespace, name)
}

// validate reports a description that lacks something.
func (k Kind[T]) validate() error {
	for name, value := range map[string]string{"Version": k.Version, "Plural": k.Plural, "Kind": k.Kind} {
		if value == "" {
			return fmt.Errorf("watchcache: the kind has no %s: set it", name)
		}
	}
	for _, f := range k.Fields {
		if f.Label == "" || f.Value == nil {
			return fmt.Errorf("watchcache: kind %s: a field needs a Label and a Value", k.Kind)
		}
	}
	return nil
}

// SetKind gives obj the type information that a stored object has. A document gets its kind and
// version. A Go type gets none: it knows what it is, and decoded protobuf has none either.
func (k Kind[T]) SetKind(obj T) {
	kind := schema.GroupVersionKind{}
	if _, ok := any(obj).(runtime.Unstructured); ok {
		kind = k.GroupVersionKind()
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
}

// Empty makes an empty object.
func (k Kind[T]) Empty() T {
	if k.New != nil {
		return k.New()
	}
	return object.New[T]()
}

// Bookmark is an object that carries nothing but a resource version, as a BOOKMARK event has it on
// the wire.
func (k Kind[T]) Bookmark(resourceVersion string, initialEventsEnd bool) T {
	obj := k.Empty()
	k.SetKind(obj)
	obj.SetResourceVersion(resourceVersion)
	if initialEventsEnd {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return obj
}

// Place puts an object without a namespace into the given one. Another namespace of its own is a
// 400 error. A cluster-scoped object has none.
func (k Kind[T]) Place(namespace string, obj T) error {
	if k.ClusterScoped {
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
