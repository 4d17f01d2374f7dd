package listwatch

import (
	"fmt"
	"reflect"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/store"
)

// FromClientLike is [FromClient] for a Go type that is known at run time only: each object has the
// type of example, a pointer to a struct. T is an interface that the type implements, and the
// readers of the collection use it as their object type.
//
//	listwatch.FromClientLike[client.Object](restClient, "widgets", example)
//
// If example states its kind, the server's objects must have that kind. Otherwise their kind is the
// type's name. Nothing else of example is used. FromClientLike panics as FromClient does, and if
// example is no pointer to a struct.
func FromClientLike[T store.Object](client rest.Interface, resource string, example T, optionList ...Option) *ListWatch[T] {
	of := reflect.TypeOf(example)
	if of == nil || of.Kind() != reflect.Pointer || of.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("listwatch: FromClientLike: the example is a %v: give a pointer to a struct, such as &corev1.Pod{}", of))
	}
	of = of.Elem()
	_, protobuf := any(example).(unmarshaler)
	d := &decoder[T]{
		new:  func() T { return reflect.New(of).Interface().(T) },
		kind: kindOf(example), protobuf: protobuf, limit: maxObject, plain: new(atomic.Uint64),
	}
	if kind := example.GetObjectKind().GroupVersionKind().Kind; d.kind != "" && kind != "" {
		d.kind = kind
	}
	return fromClient("FromClientLike", client, resource, d, optionList)
}
