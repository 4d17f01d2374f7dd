package controllerruntime

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// deepCopier copies objects of one Go type into the caller's, by the DeepCopyInto that generated
// types have. DeepCopyObject would allocate each object's own struct once more.
type deepCopier struct {
	of   reflect.Type
	into reflect.Value // func(from, into)
}

// newDeepCopier returns the copier of a pointer type; the zero value, which works too, if the type
// has no such method. That of an embedded struct does not count: it would copy that struct alone.
func newDeepCopier(of reflect.Type) deepCopier {
	method, ok := of.MethodByName("DeepCopyInto")
	if !ok || method.Type != reflect.FuncOf([]reflect.Type{of, of}, nil, false) {
		return deepCopier{}
	}
	return deepCopier{of, method.Func}
}

// copyInto makes *into a copy of *from; both are pointers of one type.
func (c deepCopier) copyInto(from, into reflect.Value) {
	if held, ok := from.Interface().(*unstructured.Unstructured); ok {
		into.Interface().(*unstructured.Unstructured).Object = copyDocument(held.Object)
		return
	}
	if from.Type() != c.of {
		from = reflect.ValueOf(from.Interface().(object).DeepCopyObject())
		into.Elem().Set(from.Elem())
		return
	}
	into.Elem().SetZero() // for a method that was written by hand
	c.into.Call([]reflect.Value{from, into})
}
