package watchcache

import (
	"encoding/json"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/store"
)

// codec has the objects of a kind as bytes: protobuf if their Go type has it, else JSON.
type codec[T store.Object] struct {
	kind     Kind[T]
	protobuf bool
	// memo has the objects that are read share their equal parts, also with those that a reflector
	// reads later. Nil if the process has no hash for that, and for Secrets, as in listwatch.
	memo *sharing.Memo
}

// message is an object with an encoding in protobuf.
type message interface {
	Size() int
	MarshalToSizedBuffer(into []byte) (int, error)
	Unmarshal(from []byte) error
}

func newCodec[T store.Object](kind Kind[T]) codec[T] {
	_, protobuf := any(kind.Empty()).(message)
	c := codec[T]{kind: kind, protobuf: protobuf}
	if kind.Plural == "secrets" {
		return c
	}
	if memo, err := sharing.Of(sharing.Kind{Type: reflect.TypeFor[T](), Resource: kind.GroupVersionResource().String()}); err == nil {
		c.memo = memo
	}
	return c
}

func (c codec[T]) name() string {
	if c.protobuf {
		return "protobuf"
	}
	return "json"
}

// append ends an entry with an object. Protobuf has no kind of the object, so that it comes first.
func (c codec[T]) append(b *block, obj T) error {
	if c.protobuf {
		m := any(obj).(message)
		version, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		b.text(version)
		b.text(kind)
		size := m.Size()
		b.number(uint64(size))
		from := len(b.bytes)
		b.bytes = slices.Grow(b.bytes, size)[:from+size]
		_, err := m.MarshalToSizedBuffer(b.bytes[from:])
		return err
	}
	var content any = obj
	if u, ok := any(obj).(runtime.Unstructured); ok {
		content = u.UnstructuredContent()
	}
	document, err := json.Marshal(content)
	b.text(string(document))
	return err
}

// read is the object at the end of an entry.
func (c codec[T]) read(b *blocks) (obj T, err error) {
	obj = c.kind.Empty()
	if u, ok := any(obj).(runtime.Unstructured); ok {
		content, err := c.tree(b.part())
		u.SetUnstructuredContent(content)
		return obj, err
	}
	if !c.protobuf {
		return obj, c.typed(b.part(), obj)
	}
	version, kind := b.text(), b.text()
	if err = c.message(b.part(), any(obj).(message)); err == nil && kind != "" {
		obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind))
	}
	return obj, err
}

func (c codec[T]) tree(document []byte) (content map[string]any, err error) {
	if c.memo != nil {
		return c.memo.UnmarshalTree(document)
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(document, &content)
	return content, err
}

func (c codec[T]) typed(document []byte, obj T) error {
	if c.memo != nil {
		return c.memo.UnmarshalTyped(document, obj)
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(document, obj)
}

func (c codec[T]) message(data []byte, into message) error {
	if c.memo != nil {
		return c.memo.Unmarshal(data, into)
	}
	return into.Unmarshal(data)
}
