package watchcache

import (
	"reflect"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tributary-go/tributary/store"
)

// newObject makes an empty T.
func newObject[T store.Object]() T {
	obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	if u, ok := any(obj).(runtime.Unstructured); ok {
		u.SetUnstructuredContent(map[string]any{})
	}
	return obj
}

func copyOf[T store.Object](obj T) T { return obj.DeepCopyObject().(T) }

// part is a top-level section of an object that has its own rule on writes.
type part struct{ field, key string }

var (
	spec   = part{field: "Spec", key: "spec"}
	status = part{field: "Status", key: "status"}
)

// of is the section of obj; ok is false where its kind has none. The value is for comparisons.
func (p part) of(obj runtime.Object) (value any, ok bool) {
	if u, isDocument := obj.(runtime.Unstructured); isDocument {
		value, ok = u.UnstructuredContent()[p.key]
		return value, ok
	}
	field := p.in(obj)
	if !field.IsValid() {
		return nil, false
	}
	return field.Interface(), true
}

// same reports whether two objects have the same section.
func (p part) same(a, b runtime.Object) bool {
	inA, _ := p.of(a)
	inB, _ := p.of(b)
	return apiequality.Semantic.DeepEqual(inA, inB)
}

// move makes the section of into what it is in from, with which it is then shared; into must not be stored yet.
func (p part) move(into, from runtime.Object) {
	if u, ok := into.(runtime.Unstructured); ok {
		content := u.UnstructuredContent()
		if value, found := from.(runtime.Unstructured).UnstructuredContent()[p.key]; found {
			content[p.key] = value
		} else {
			delete(content, p.key)
		}
		return
	}
	if field := p.in(into); field.IsValid() {
		field.Set(p.in(from))
	}
}

func (p part) in(obj runtime.Object) reflect.Value {
	value := reflect.ValueOf(obj).Elem()
	if value.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return value.FieldByName(p.field)
}
