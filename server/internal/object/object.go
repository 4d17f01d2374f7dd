package object

import (
	"maps"
	"reflect"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tributary-go/tributary/store"
)

// New makes an empty T.
func New[T store.Object]() T {
	obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	if u, ok := any(obj).(runtime.Unstructured); ok {
		u.SetUnstructuredContent(map[string]any{})
	}
	return obj
}

// Copy is a deep copy of obj.
func Copy[T store.Object](obj T) T { return obj.DeepCopyObject().(T) }

// Section is a top-level part of an object that has its own rule on writes.
type Section struct{ field, key string }

// The sections.
var (
	Spec   = Section{field: "Spec", key: "spec"}
	Status = Section{field: "Status", key: "status"}
)

// Name is the section's name on the wire, and that of its subresource.
func (s Section) Name() string { return s.key }

// Of returns the section of obj; ok is false if the kind has none. The value is for comparisons.
func (s Section) Of(obj runtime.Object) (value any, ok bool) {
	if u, isDocument := obj.(runtime.Unstructured); isDocument {
		value, ok = u.UnstructuredContent()[s.key]
		return value, ok
	}
	field := s.in(obj)
	if !field.IsValid() {
		return nil, false
	}
	return field.Interface(), true
}

// Same reports whether two objects have equal sections.
func (s Section) Same(a, b runtime.Object) bool {
	inA, _ := s.Of(a)
	inB, _ := s.Of(b)
	return apiequality.Semantic.DeepEqual(inA, inB)
}

// Move gives into the section of from. Both share it afterwards, so into must not be stored yet.
func (s Section) Move(into, from runtime.Object) {
	if u, ok := into.(runtime.Unstructured); ok {
		content := u.UnstructuredContent()
		if value, found := from.(runtime.Unstructured).UnstructuredContent()[s.key]; found {
			content[s.key] = value
		} else {
			delete(content, s.key)
		}
		return
	}
	if field := s.in(into); field.IsValid() {
		field.Set(s.in(from))
	}
}

func (s Section) in(obj runtime.Object) reflect.Value {
	value := reflect.ValueOf(obj).Elem()
	if value.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return value.FieldByName(s.field)
}

// Clear drops the section.
func (s Section) Clear(obj runtime.Object) {
	if u, ok := obj.(runtime.Unstructured); ok {
		delete(u.UnstructuredContent(), s.key)
		return
	}
	if field := s.in(obj); field.IsValid() {
		field.SetZero()
	}
}

// HasStatus reports whether objects like obj can have a status: every document can.
func HasStatus(obj runtime.Object) bool {
	if _, isDocument := obj.(runtime.Unstructured); isDocument {
		return true
	}
	return Status.in(obj).IsValid()
}

// SameBody reports whether two objects are equal in all but their metadata and, if it is written
// apart, their status.
func SameBody(a, b runtime.Object, statusApart bool) bool {
	return apiequality.Semantic.DeepEqual(body(a, statusApart), body(b, statusApart))
}

// body is an object without its metadata, which shares the rest with the object.
func body(obj runtime.Object, statusApart bool) any {
	if u, isDocument := obj.(runtime.Unstructured); isDocument {
		kept := maps.Clone(u.UnstructuredContent())
		delete(kept, "metadata")
		if statusApart {
			delete(kept, Status.key)
		}
		return kept
	}
	value := reflect.New(reflect.TypeOf(obj).Elem())
	value.Elem().Set(reflect.ValueOf(obj).Elem())
	kept := value.Interface().(runtime.Object)
	Section{field: "TypeMeta"}.Clear(kept)
	Section{field: "ObjectMeta"}.Clear(kept)
	if statusApart {
		Status.Clear(kept)
	}
	return kept
}
