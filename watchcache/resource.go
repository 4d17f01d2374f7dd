package watchcache

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/store"
)

// Resource describes a collection: under which names it is served, which of its fields can be selected, how it is
// shown and how it ends. [Pods] and [Core] make the usual ones.
type Resource[T store.Object] struct {
	// Group is the API group; empty for the core group, which is served under /api.
	Group string
	// Version is the API version, such as "v1". T must be the Go type of that version: nothing is converted.
	Version string
	// Plural is the name in paths, such as "pods".
	Plural string
	// Kind is the kind of one object, such as "Pod"; a list is of kind Kind+"List".
	Kind string
	// ShortNames are further names that kubectl takes, such as "po".
	ShortNames []string
	// ClusterScoped says that objects have no namespace.
	ClusterScoped bool

	// Fields are the field labels that selectors may use, beside metadata.name and metadata.namespace.
	Fields []Field[T]
	// Columns are the columns of a table (kubectl get). None means name and age.
	Columns []Column[T]
	// GracePeriod is how many seconds an object that is deleted without a period of the caller's stays, marked as
	// terminating, until its owner removes it. Zero means that it goes at once, whatever the caller asks for. A nil
	// GracePeriod is for kinds without graceful deletion, which is all but pods.
	GracePeriod func(obj T) int64
}

// Field is a label that field selectors may use.
type Field[T store.Object] struct {
	// Label is the name in selectors, such as "spec.nodeName".
	Label string
	// Value computes the field. It must be a pure function of the object.
	Value func(obj T) string
	// Indexed makes lists by equality on this field cost what they return, for about 50 bytes per object.
	Indexed bool
}

// Core describes a namespaced resource of the core group at version v1, without fields of its own.
func Core[T store.Object](plural, kind string) Resource[T] {
	return Resource[T]{Version: "v1", Plural: plural, Kind: kind}
}

func (r Resource[T]) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

func (r Resource[T]) groupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

func (r Resource[T]) apiVersion() string { return r.groupVersionKind().GroupVersion().String() }

func (r Resource[T]) key(namespace, name string) string {
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

// setKind gives obj the type information that a stored object has: the kind of the resource where the object is
// nothing but a document, none in Go types, which know what they are (as decoded protobuf has none).
func (r Resource[T]) setKind(obj T) {
	kind := schema.GroupVersionKind{}
	if _, ok := any(obj).(runtime.Unstructured); ok {
		kind = r.groupVersionKind()
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
}

// bookmark is an object that carries nothing but a resource version.
func (r Resource[T]) bookmark(resourceVersion string, initialEventsEnd bool) T {
	obj := newObject[T]()
	r.setKind(obj)
	obj.SetResourceVersion(resourceVersion)
	if initialEventsEnd {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return obj
}
