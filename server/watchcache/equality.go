package watchcache

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/store"
)

// equality is a value that every object of a selection has, such as a node's name.
type equality[T store.Object] struct {
	source source
	value  string
	of     func(T) (value string, ok bool)
}

// narrow chooses the equality by which watchers of the selection are woken: the key of one object,
// or the value that the fewest objects of a state have.
func (s *selection[T]) narrow(state store.Snapshot[T]) {
	if s.pinned() {
		of := func(obj T) (string, bool) { return store.KeyOf(obj), true }
		if s.cache.kind.ClusterScoped {
			of = func(obj T) (string, bool) { return obj.GetName(), true }
		}
		s.narrowest = &equality[T]{source: source{kind: byKey}, value: s.key(), of: of}
		return
	}
	switch equalities := s.equalities(); len(equalities) {
	case 0:
		s.narrowest = &equality[T]{of: func(T) (string, bool) { return "", true }}
	case 1:
		s.narrowest = &equalities[0]
	default:
		s.narrowest = rarest(equalities, state)
	}
}

// equalities are the values that the selectors pin. Those that usually tell more come first.
func (s *selection[T]) equalities() (found []equality[T]) {
	field := func(label, value string) {
		of := s.cache.fields[label]
		found = append(found, equality[T]{
			source: source{byField, label}, value: value, of: func(obj T) (string, bool) { return of(obj), true },
		})
	}
	if s.name != "" {
		field(nameField, s.name)
	}
	for _, indexed := range []bool{true, false} {
		for _, t := range s.terms {
			if _, ok := s.cache.indexes[t.label]; ok == indexed && !t.not && t.label != nameField && t.label != namespaceField {
				field(t.label, t.value)
			}
		}
	}
	if s.labels != nil {
		requirements, _ := s.labels.Requirements()
		for _, r := range requirements {
			label := r.Key()
			value, ok := s.labels.RequiresExactMatch(label)
			if !ok {
				continue
			}
			found = append(found, equality[T]{
				source: source{byLabel, label}, value: value,
				of: func(obj T) (string, bool) { return lookUp(obj.GetLabels(), label) },
			})
		}
	}
	if s.namespace != "" && !s.cache.kind.ClusterScoped {
		field(namespaceField, s.namespace)
	}
	return found
}

// onlyAsksFor reports whether the selection keeps every object that has a value.
func (s *selection[T]) onlyAsksFor(e *equality[T]) bool {
	switch e.source.kind {
	case byNothing:
		return false
	case byLabel:
		requirements, _ := s.labels.Requirements()
		return len(requirements) == 1 && s.namespace == "" && s.name == "" && len(s.terms) == 0
	}
	pinned := func(label, value string) bool {
		if e.source.kind == byKey {
			return label == nameField && value == s.name || label == namespaceField && value == s.namespace
		}
		return label == e.source.label && value == e.value
	}
	for _, t := range s.terms {
		if t.not || !pinned(t.label, t.value) {
			return false
		}
	}
	return s.labels == nil && (s.name == "" || pinned(nameField, s.name)) &&
		(s.namespace == "" || pinned(namespaceField, s.namespace))
}

// text tells selections apart that see different changes.
func (s *selection[T]) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q", s.namespace, s.name)
	for _, t := range s.terms {
		fmt.Fprintf(&b, " %q %t %q", t.label, t.not, t.value)
	}
	if s.labels == nil {
		return b.String()
	}
	requirements, selectable := s.labels.Requirements()
	for _, r := range requirements {
		fmt.Fprintf(&b, ", %q %q %q", r.Key(), r.Operator(), slices.Sorted(slices.Values(r.ValuesUnsorted())))
	}
	if len(requirements) == 0 || !selectable {
		// The selector is of another package: its text does not tell which objects it keeps.
		fmt.Fprintf(&b, " %p", s)
	}
	return b.String()
}

func lookUp(set labels.Set, label string) (string, bool) {
	value, ok := set[label]
	return value, ok
}

// sampleSize is the number of objects by which the rarest value is chosen.
const sampleSize = 128

// rarest is the equality that the fewest of some objects of a state have. The objects are in the
// order of their hashes, so that the first of them are a sample.
func rarest[T store.Object](equalities []equality[T], state store.Snapshot[T]) *equality[T] {
	counts, asked := make([]int, len(equalities)), 0
	for _, obj := range state.All() {
		for i, e := range equalities {
			if value, ok := e.of(obj); ok && value == e.value {
				counts[i]++
			}
		}
		if asked++; asked == sampleSize {
			break
		}
	}
	best := 0
	for i, count := range counts {
		if count < counts[best] {
			best = i
		}
	}
	return &equalities[best]
}
