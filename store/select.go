package store

import (
	"fmt"
	"iter"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/tributary-go/tributary/internal/checked"
	"github.com/tributary-go/tributary/internal/trie"
)

// ByNamespace declares an index of the namespaces, for [Snapshot.InNamespace] and
// [Snapshot.Select].
func ByNamespace[T Object]() *Index[T, string] {
	x := NewIndex("namespace", func(obj T) []string { return []string{obj.GetNamespace()} })
	x.part.namespace = true
	return x
}

// ByLabel declares an index of the values of one label, for [Snapshot.Select]. Objects without the
// label are not in it.
func ByLabel[T Object](key string) *Index[T, string] {
	x := NewIndex("label "+key, func(obj T) []string { return labelled(obj.GetLabels(), key) })
	x.part.label = key
	return x
}

// ByField declares an index of the text of a field, by its path of JSON names, such as
// spec.nodeName. An object without that text is found under "". It panics if T is a Go type without
// such a field, or if the field is no text.
//
// It finds what an index with a function of the same field finds. A store of package packed reads
// the field off the bytes, and decodes no object for it. So it is for stores at rest; the function
// is as good for others, and quicker.
func ByField[T Object](path string) *Index[T, string] {
	field := mustField(reflect.TypeFor[T](), path)
	x := NewIndex("field "+path, func(obj T) []string { return []string{field.Of(obj)} })
	x.part.field = path
	return x
}

func mustField(of reflect.Type, path string) *checked.Field {
	field, err := checked.FieldOf(of, path)
	if err != nil {
		panic("store: ByField: " + err.Error())
	}
	return field
}

// read returns the values of the label or the field.
func (a attribute) read(of Reading) []string {
	if a.field != "" {
		return []string{of.Field(a.field)}
	}
	return labelled(of.Labels(), a.label)
}

func labelled(labels map[string]string, key string) []string {
	if value, ok := labels[key]; ok {
		return []string{value}
	}
	return nil
}

// InNamespace yields the objects of a namespace, in no particular order; those of all namespaces if
// it is empty. Its cost is that of [Snapshot.Select].
func (s Snapshot[T]) InNamespace(namespace string) iter.Seq[T] {
	return s.Select(namespace, nil)
}

// Select yields the objects of a namespace that match a label selector, in no particular order. An
// empty namespace stands for all namespaces, and a nil selector matches all objects.
//
// It looks at the objects of the smallest part that an index has: with [ByNamespace] the objects of
// the namespace; with [ByLabel] those that match a requirement such as "app=web" or "app in (web,
// api)". Without such an index it looks at every object.
func (s Snapshot[T]) Select(namespace string, selector labels.Selector) iter.Seq[T] {
	if selector == nil {
		selector = labels.Everything()
	}
	requirements, selectable := selector.Requirements()
	if !selectable {
		return func(func(T) bool) {}
	}
	if s.at == nil {
		return func(func(T) bool) {}
	}
	found := s.at.smallest(namespace, requirements, selector)
	if s.at.kept == nil {
		return func(yield func(T) bool) {
			found.all(func(entry Entry) bool { return !found.has(entry, namespace, selector) || yield(entry.(T)) })
		}
	}
	open := opener[T](s.at.kept)
	return func(yield func(T) bool) {
		found.all(func(entry Entry) bool { return !found.has(entry, namespace, selector) || yield(open(entry)) })
	}
}

// part is the smallest part of the content that an index has and that holds all wanted objects.
type part struct {
	of     *version
	index  indexed[string]
	values []string // of the index; an object has one of them; nil: all objects
	// Each object of the part is in the wanted namespace, or matches the selector.
	inNamespace, matching bool
}

// smallest finds the part to look at.
func (v *version) smallest(namespace string, requirements labels.Requirements, selector labels.Selector) part {
	// A selector of the program's own may have no requirements, or match less than they say.
	all, one := selector.Empty(), len(requirements) == 1 && isUsual(selector)
	best, size := part{of: v, inNamespace: namespace == metav1.NamespaceAll, matching: all}, v.entries.Len()
	whole := best
	for i, index := range v.schema {
		of := index.attribute()
		if of.namespace && !whole.inNamespace {
			next := part{v, v.indexes[i].(indexed[string]), []string{namespace}, true, all}
			best, size = next.or(best, size)
		}
		for _, r := range requirements {
			if of.label != "" && r.Key() == of.label && valued(r.Operator()) {
				next := part{v, v.indexes[i].(indexed[string]), r.ValuesUnsorted(), whole.inNamespace, all || one}
				best, size = next.or(best, size)
			}
		}
	}
	return best
}

var (
	parsed = reflect.TypeOf(labels.NewSelector())
	ofSet  = reflect.TypeFor[labels.ValidatedSetSelector]()
)

// isUsual reports whether a selector is one of package labels, whose requirements say all.
func isUsual(selector labels.Selector) bool {
	of := reflect.TypeOf(selector)
	return of == parsed || of == ofSet
}

// or is the smaller of two parts, with its size.
func (p part) or(best part, size int) (part, int) {
	n := 0
	for _, value := range p.values {
		n += p.under(value).Len()
	}
	if n < size {
		return p, n
	}
	return best, size
}

// has reports whether an object of the part is wanted.
func (p part) has(entry Entry, namespace string, selector labels.Selector) bool {
	return (p.inNamespace || entry.GetNamespace() == namespace) && (p.matching || selector.Matches(labels.Set(p.of.labels(entry))))
}

// all yields every entry of the part.
func (p part) all(yield func(Entry) bool) {
	if p.values == nil {
		p.of.entries.All()(func(_ string, entry Entry) bool { return yield(entry) })
		return
	}
	for _, value := range p.values {
		for entry := range p.under(value).Keys() {
			if !yield(entry) {
				return
			}
		}
	}
}

func (p part) under(value string) members {
	found, _ := p.index.Get(trie.HashString(value), value)
	return found
}

// labels are those of an entry.
func (v *version) labels(entry Entry) map[string]string {
	if v.kept == nil {
		return entry.(interface{ GetLabels() map[string]string }).GetLabels()
	}
	return v.kept.read(entry).Labels()
}

// valued reports whether an operator asks for one of the requirement's values.
func valued(operator selection.Operator) bool {
	switch operator {
	case selection.Equals, selection.DoubleEquals, selection.In:
		return true
	}
	return false
}

// Find returns the object of a name in a namespace, which is empty for cluster scope. from is a
// snapshot, an indexer, an informer or a lease. If there is no such object, apierrors.IsNotFound is
// true of the error, which has T's name for the resource. It is not as long as from has no whole
// state of the server: then nobody knows.
func Find[T Object](from interface{ Get(key string) (T, bool) }, namespace, name string) (T, error) {
	unread := isUnread[T](from) // asked first: the state may come meanwhile
	obj, ok := from.Get(Key(namespace, name))
	switch {
	case ok:
		return obj, nil
	case unread:
		return obj, fmt.Errorf("store: find %s: not read yet: the collection has no whole state of the server", Key(namespace, name))
	default:
		kind := reflect.TypeFor[T]()
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		return obj, apierrors.NewNotFound(schema.GroupResource{Resource: kind.Name()}, name)
	}
}

// isUnread reports whether from is a copy without a whole state of its server.
func isUnread[T Object](from any) bool {
	if copied, ok := from.(interface{ Synced() <-chan struct{} }); ok {
		select {
		case <-copied.Synced():
			return false
		default:
			return true
		}
	}
	if versioned, ok := from.(interface{ ResourceVersion() string }); ok && versioned.ResourceVersion() != "" {
		return false
	}
	if copied, ok := from.(Snapshotter[T]); ok {
		from = copied.Snapshot()
	}
	now, ok := from.(Snapshot[T])
	return ok && now.ResourceVersion() == "" && now.Len() == 0
}
