package watchcache

import (
	"iter"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache/internal/apierror"
)

const (
	nameField      = "metadata.name"
	namespaceField = "metadata.namespace"
)

// selection is what a request selects of a collection.
type selection[T store.Object] struct {
	cache           *Cache[T]
	namespace, name string
	labels          labels.Selector // nil keeps all
	fields          fields.Selector // nil keeps all
}

// bind checks what a request selects: an unknown field label is a 400 error.
func (c *Cache[T]) bind(r Request) (*selection[T], error) {
	bound := &selection[T]{cache: c, namespace: r.Namespace, name: r.Name}
	if r.LabelSelector != nil && !r.LabelSelector.Empty() {
		bound.labels = r.LabelSelector
	}
	if r.FieldSelector == nil || r.FieldSelector.Empty() {
		return bound, nil
	}
	bound.fields = r.FieldSelector
	for _, requirement := range bound.fields.Requirements() {
		if _, ok := c.fields[requirement.Field]; !ok {
			return nil, apierror.BadRequest("field label not supported: %s", requirement.Field)
		}
	}
	if name, ok := bound.fields.RequiresExactMatch(nameField); ok && bound.name == "" {
		bound.name = name
	}
	if namespace, ok := bound.fields.RequiresExactMatch(namespaceField); ok && bound.namespace == "" {
		bound.namespace = namespace
	}
	return bound, nil
}

// selective reports whether anything but the namespace is selected by.
func (s *selection[T]) selective() bool { return s.name != "" || s.labels != nil || s.fields != nil }

func (s *selection[T]) matches(obj T) bool {
	return (s.namespace == "" || s.namespace == obj.GetNamespace()) &&
		(s.name == "" || s.name == obj.GetName()) &&
		(s.labels == nil || s.labels.Matches(labels.Set(obj.GetLabels()))) &&
		(s.fields == nil || s.fields.Matches(fieldsOf[T]{s.cache.fields, obj}))
}

// in yields what matches in a state, in no particular order.
func (s *selection[T]) in(state store.Snapshot[T]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for obj := range s.candidates(state) {
			if s.matches(obj) && !yield(obj) {
				return
			}
		}
	}
}

// candidates yields what may match, by the cheapest way there is.
func (s *selection[T]) candidates(state store.Snapshot[T]) iter.Seq[T] {
	if s.name != "" && (s.namespace != "" || s.cache.resource.ClusterScoped) {
		if obj, ok := state.Get(s.cache.resource.Key(s.namespace, s.name)); ok {
			return func(yield func(T) bool) { yield(obj) }
		}
		return func(func(T) bool) {}
	}
	if s.fields != nil {
		for label, index := range s.cache.indexes {
			if value, ok := s.fields.RequiresExactMatch(label); ok {
				return index.Objects(state, value)
			}
		}
	}
	return func(yield func(T) bool) {
		for _, obj := range state.All() {
			if !yield(obj) {
				return
			}
		}
	}
}

// fieldsOf shows an object to a field selector.
type fieldsOf[T store.Object] struct {
	values map[string]func(T) string
	obj    T
}

func (f fieldsOf[T]) Has(label string) bool { return f.values[label] != nil }

func (f fieldsOf[T]) Get(label string) string {
	if value := f.values[label]; value != nil {
		return value(f.obj)
	}
	return ""
}
