package watchcache

import (
	"iter"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	requirement "k8s.io/apimachinery/pkg/selection"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/store"
)

const (
	nameField      = "metadata.name"
	namespaceField = "metadata.namespace"
)

// selection is the part of a collection that a request selects.
type selection[T store.Object] struct {
	cache           *Cache[T]
	namespace, name string
	labels          labels.Selector // nil keeps all
	fields          fields.Selector // nil keeps all
	terms           []term[T]       // of fields

	fetched   uint64       // how many objects in has looked at
	narrowest *equality[T] // where its watchers wait; nil: with those of everything
}

// term is one requirement of a field selector.
type term[T store.Object] struct {
	label string
	of    func(T) string
	value string
	not   bool
}

// bind makes the selection of a request: an unknown field label is a 400 error.
func (c *Cache[T]) bind(r Request) (*selection[T], error) {
	bound := &selection[T]{cache: c, namespace: r.Namespace, name: r.Name}
	if r.LabelSelector != nil && !r.LabelSelector.Empty() {
		bound.labels = r.LabelSelector
	}
	if r.FieldSelector == nil || r.FieldSelector.Empty() {
		return bound, nil
	}
	bound.fields = r.FieldSelector
	for _, r := range bound.fields.Requirements() {
		of, ok := c.fields[r.Field]
		if !ok {
			return nil, apierror.BadRequest("field label not supported: %s", r.Field)
		}
		bound.terms = append(bound.terms, term[T]{r.Field, of, r.Value, r.Operator == requirement.NotEquals})
	}
	if name, ok := bound.fields.RequiresExactMatch(nameField); ok && bound.name == "" {
		bound.name = name
	}
	if namespace, ok := bound.fields.RequiresExactMatch(namespaceField); ok && bound.namespace == "" {
		bound.namespace = namespace
	}
	return bound, nil
}

// selective reports whether the selection asks for more than a namespace.
func (s *selection[T]) selective() bool { return s.name != "" || s.labels != nil || s.fields != nil }

func (s *selection[T]) matches(obj T) bool {
	return (s.namespace == "" || s.namespace == obj.GetNamespace()) &&
		(s.name == "" || s.name == obj.GetName()) &&
		s.termsMatch(obj) &&
		(s.labels == nil || s.labels.Matches(labels.Set(obj.GetLabels())))
}

func (s *selection[T]) termsMatch(obj T) bool {
	for i := range s.terms {
		if t := &s.terms[i]; (t.of(obj) == t.value) == t.not {
			return false
		}
	}
	return true
}

// everything reports whether all objects match.
func (s *selection[T]) everything() bool { return s.namespace == "" && !s.selective() }

// sorted returns the objects of a state that match, in the order of lists. whole is the listing
// that they are taken from, if they are all of the state. The slice is shared, and read-only.
func (s *selection[T]) sorted(state view[T]) (objects []T, whole *listing[T]) {
	if !s.everything() {
		return sorted(s.in(state)), nil
	}
	whole = s.cache.listings.of(state.present)
	if len(state.undo) > 0 {
		objects = whole.before(state.undo)
		s.fetched += uint64(len(objects))
		return objects, nil
	}
	s.fetched += uint64(len(whole.objects))
	return whole.objects, whole
}

// in yields the objects of a state that match, in no particular order.
func (s *selection[T]) in(state view[T]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for obj := range s.candidates(state.present) {
			s.fetched++
			if !state.undone(obj) && s.matches(obj) && !yield(obj) {
				return
			}
		}
		for _, obj := range state.undo {
			if !pointer.None(obj) && s.matches(obj) && !yield(obj) {
				return
			}
		}
	}
}

// candidates yields the objects that may match, by the cheapest way there is.
func (s *selection[T]) candidates(state store.Snapshot[T]) iter.Seq[T] {
	if s.pinned() {
		if obj, ok := state.Get(s.key()); ok {
			return func(yield func(T) bool) { yield(obj) }
		}
		return func(func(T) bool) {}
	}
	if index, value := s.smallest(state); index != nil {
		return index.Objects(state, value)
	}
	return func(yield func(T) bool) {
		for _, obj := range state.All() {
			if !yield(obj) {
				return
			}
		}
	}
}

// smallest is an index and the value under which it has all objects that can match. Of several
// indexes it is the one with the fewest objects.
func (s *selection[T]) smallest(state store.Snapshot[T]) (smallest *store.Index[T, string], value string) {
	for label, index := range s.cache.indexes {
		wanted, ok := s.namespace, label == namespaceField && s.namespace != ""
		if !ok && s.fields != nil {
			wanted, ok = s.fields.RequiresExactMatch(label)
		}
		if ok && (smallest == nil || index.Len(state, wanted) < smallest.Len(state, value)) {
			smallest, value = index, wanted
		}
	}
	return smallest, value
}

// pinned reports whether one object at most can match.
func (s *selection[T]) pinned() bool {
	return s.name != "" && (s.namespace != "" || s.cache.kind.ClusterScoped)
}

// key is the store key of the only object that can match.
func (s *selection[T]) key() string { return s.cache.kind.Key(s.namespace, s.name) }
