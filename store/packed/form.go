package packed

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/store"
)

// form is how objects of T are encoded.
type form[T store.Object] struct {
	new    func() T
	reset  func(T)
	secret bool // of T
	tree   bool // T has no Go type of its own
	fields *fields
}

// message is the generated protobuf code of an API type.
type message interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
	Unmarshal([]byte) error
}

func formOf[O any, T interface {
	*O
	store.Object
}]() form[T] {
	_, secret := any(T(nil)).(*corev1.Secret)
	_, tree := any(T(nil)).(*unstructured.Unstructured)
	return form[T]{
		new: func() T { return new(O) },
		reset: func(obj T) {
			var none O
			*obj = none
		},
		secret: secret,
		tree:   tree,
		fields: &fields{typ: reflect.TypeFor[T]()},
	}
}

// formLike is formOf by reflection.
func formLike[T store.Object](example T) form[T] {
	of := reflect.TypeOf(example)
	if of == nil || of.Kind() != reflect.Pointer || of.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("packed: Like: a %T is no pointer to a struct", example))
	}
	_, secret := any(example).(*corev1.Secret)
	_, tree := any(example).(*unstructured.Unstructured)
	return form[T]{
		new:    func() T { return reflect.New(of.Elem()).Interface().(T) },
		reset:  func(obj T) { reflect.ValueOf(obj).Elem().SetZero() },
		secret: secret,
		tree:   tree,
		fields: &fields{typ: of},
	}
}

// isSecret reports whether an object names itself a Secret.
func isSecret(obj store.Object) bool {
	gvk := obj.GetObjectKind().GroupVersionKind()
	return gvk.Kind == "Secret" && gvk.Group == ""
}

// encode appends the document of an object to space: in protobuf if its type has that, in JSON
// otherwise.
func (form[T]) encode(space []byte, obj T) ([]byte, flags, error) {
	switch o := any(obj).(type) {
	case message:
		gvk := obj.GetObjectKind().GroupVersionKind()
		if gvk.Empty() {
			document, err := appendMessage(space, o)
			return document, 0, err
		}
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		space = appendText(appendText(space, apiVersion), kind)
		document, err := appendMessage(space, o)
		return document, flagTyped, err
	case *unstructured.Unstructured:
		document, err := json.Marshal(exact(o.Object))
		return append(space, document...), flagJSON | flagTree, err
	}
	document, err := json.Marshal(obj)
	return append(space, document...), flagJSON, err
}

func appendMessage(space []byte, m message) ([]byte, error) {
	size := m.Size()
	space = slices.Grow(space, size)
	n, err := m.MarshalToSizedBuffer(space[len(space) : len(space)+size])
	if err == nil && n != size {
		err = errors.New("the message has another size than it says")
	}
	return space[:len(space)+size], err
}

func appendText(space []byte, text string) []byte {
	return append(binary.AppendUvarint(space, uint64(len(text))), text...)
}

// exact is a tree that json encodes without a loss: a whole number that is a float stays one.
func exact(value any) any {
	if !hasWholeFloat(value) {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, part := range v {
			out[key] = exact(part)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, part := range v {
			out[i] = exact(part)
		}
		return out
	}
	return json.RawMessage(strconv.FormatFloat(value.(float64), 'f', 1, 64))
}

// hasWholeFloat reports whether json would write a float of a tree as an integer.
func hasWholeFloat(value any) bool {
	switch v := value.(type) {
	case float64:
		return v == math.Trunc(v) && math.Abs(v) < 1e21
	case map[string]any:
		for _, part := range v {
			if hasWholeFloat(part) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasWholeFloat)
	}
	return false
}

var errHead = errors.New("the document has no head")

// decode decodes a document into an empty object.
func (form[T]) decode(document []byte, f flags, obj T) error {
	if f&flagJSON != 0 {
		if u, ok := any(obj).(*unstructured.Unstructured); ok {
			return kjson.UnmarshalCaseSensitivePreserveInts(document, &u.Object)
		}
		err := kjson.UnmarshalCaseSensitivePreserveInts(document, obj)
		if f&flagBare != 0 {
			obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		}
		return err
	}
	apiVersion, kind, document, err := cutHead(document, f)
	if err != nil {
		return err
	}
	if err := any(obj).(message).Unmarshal(document); err != nil {
		return err
	}
	if f&flagTyped != 0 {
		obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(string(apiVersion), string(kind)))
	}
	return nil
}

// cutHead splits apiVersion and kind off, if the document has them before its message.
func cutHead(document []byte, f flags) (apiVersion, kind, message []byte, err error) {
	if f&flagTyped == 0 {
		return nil, nil, document, nil
	}
	apiVersion, document, ok := cutText(document)
	kind, message, also := cutText(document)
	if !ok || !also {
		return nil, nil, nil, errHead
	}
	return apiVersion, kind, message, nil
}

func cutText(document []byte) (text, rest []byte, ok bool) {
	n, size := binary.Uvarint(document)
	if size <= 0 || n > uint64(len(document)-size) {
		return nil, nil, false
	}
	return document[size : size+int(n)], document[size+int(n):], true
}
