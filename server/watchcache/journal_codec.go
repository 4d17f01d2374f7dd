package watchcache

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tributary-go/tributary/store"
)

// codec has the objects of a kind as bytes: protobuf if their Go type has it, else JSON.
type codec[T store.Object] struct {
	kind     Kind[T]
	protobuf bool
}

// message is an object with an encoding in protobuf.
type message interface {
	Size() int
	MarshalToSizedBuffer(into []byte) (int, error)
	Unmarshal(from []byte) error
}

func newCodec[T store.Object](kind Kind[T]) codec[T] {
	_, protobuf := any(kind.Empty()).(message)
	return codec[T]{kind, protobuf}
}

func (c codec[T]) name() string {
	if c.protobuf {
		return "protobuf"
	}
	return "json"
}

// append ends a record with an object. Protobuf has no kind of the object, so that it comes first.
func (c codec[T]) append(r *records, obj T) error {
	if c.protobuf {
		m := any(obj).(message)
		version, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		r.text(version)
		r.text(kind)
		size, from := m.Size(), len(r.bytes)
		r.bytes = slices.Grow(r.bytes, size)[:from+size]
		_, err := m.MarshalToSizedBuffer(r.bytes[from:])
		return err
	}
	var content any = obj
	if u, ok := any(obj).(runtime.Unstructured); ok {
		content = u.UnstructuredContent()
	}
	document, err := json.Marshal(content)
	r.bytes = append(r.bytes, document...)
	return err
}

// read is the object at the end of a record. It shares nothing with the record.
func (c codec[T]) read(r *record) (obj T, err error) {
	obj = c.kind.Empty()
	if u, ok := any(obj).(runtime.Unstructured); ok {
		content := map[string]any{}
		err = utiljson.Unmarshal(r.rest, &content)
		u.SetUnstructuredContent(content)
		return obj, err
	}
	if !c.protobuf {
		return obj, utiljson.Unmarshal(r.rest, obj)
	}
	version, kind := r.text(), r.text()
	if err = any(obj).(message).Unmarshal(r.rest); err == nil && kind != "" {
		obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind))
	}
	return obj, err
}
