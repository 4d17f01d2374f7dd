package watchcache

import (
	"iter"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/store"
)

// Selection narrows a collection. The zero value keeps everything.
type Selection struct {
	// Namespace keeps the objects of one namespace; empty keeps all.
	Namespace string
	// Name keeps the objects of that name.
	Name string
	// Labels keeps the objects whose labels match.
	Labels labels.Selector
	// Fields keeps the objects whose fields match: metadata.name, metadata.namespace and the resource's own.
	Fields fields.Selector
}

const (
	nameField      = "metadata.name"
	namespaceField = "metadata.namespace"
)

// selection is a Selection that is bound to a collection.
type selection[T store.Object] struct {
	Selection
	cache *Cache[T]
	// byLabels and byFields say whether there is more than name and namespace to look at.
	byLabels, byFields bool
}

// bind checks a selection: an unknown field label is a 400 error.
func (c *Cache[T]) bind(s Selection) (*selection[T], error) {
	bound := &selection[T]{Selection: s, cache: c}
	bound.byLabels = s.Labels != nil && !s.Labels.Empty()
	bound.byFields = s.Fields != nil && !s.Fields.Empty()
	if !bound.byFields {
		return bound, nil
	}
	for _, requirement := range s.Fields.Requirements() {
		if _, ok := c.fields[requirement.Field]; !ok {
			return nil, badRequest("field label not supported: %s", requirement.Field)
		}
	}
	if name, ok := s.Fields.RequiresExactMatch(nameField); ok && bound.Name == "" {
		bound.Name = name
	}
	if namespace, ok := s.Fields.RequiresExactMatch(namespaceField); ok && bound.Namespace == "" {
		bound.Namespace = namespace
	}
	return bound, nil
}

// selective reports whether anything but the namespace is selected by.
func (s *selection[T]) selective() bool { return s.Name != "" || s.byLabels || s.byFields }

func (s *selection[T]) matches(obj T) bool {
	return (s.Namespace == "" || s.Namespace == obj.GetNamespace()) &&
		(s.Name == "" || s.Name == obj.GetName()) &&
		(!s.byLabels || s.Labels.Matches(labels.Set(obj.GetLabels()))) &&
		(!s.byFields || s.Fields.Matches(fieldsOf[T]{s.cache.fields, obj}))
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
	if s.Name != "" && (s.Namespace != "" || s.cache.resource.ClusterScoped) {
		if obj, ok := state.Get(s.cache.resource.key(s.Namespace, s.Name)); ok {
			return func(yield func(T) bool) { yield(obj) }
		}
		return func(func(T) bool) {}
	}
	if s.byFields {
		for label, index := range s.cache.indexes {
			if value, ok := s.Fields.RequiresExactMatch(label); ok {
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
