package etcd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/internal/wire"
	"github.com/tributary-go/tributary/store"
)

// decoder turns values into objects. The first bytes of a value tell its form. It is safe for
// concurrent use.
type decoder[T store.Object] struct {
	new        func() T
	kind       string        // that the objects must have; empty: any
	apiVersion string        // likewise
	memo       *sharing.Memo // nil without sharing

	convert func(json []byte) ([]byte, error)              // nil: JSON is read as it is
	decrypt func(key string, value []byte) ([]byte, error) // nil: values are plain
}

// unmarshaler is the generated protobuf code of an API type.
type unmarshaler interface{ Unmarshal(data []byte) error }

func newDecoder[O any, T interface {
	*O
	store.Object
}]() *decoder[T] {
	return decoderOf(func() T { return new(O) })
}

// decoderOf decodes into an object of empty.
func decoderOf[T store.Object](empty func() T) *decoder[T] {
	d := &decoder[T]{new: empty}
	switch obj := any(empty()).(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
	default:
		d.kind = reflect.TypeOf(obj).Elem().Name() // the API's convention
	}
	return d
}

// share begins to decode equal parts once. A process that may not hash in the way that makes this
// safe does without.
func (d *decoder[T]) share() {
	if memo, err := sharing.New(); err == nil {
		d.memo = memo
	}
}

// begin doubts the shared parts: a reader that lists again may have written into them.
func (d *decoder[T]) begin() {
	if d.memo != nil {
		d.memo.Doubt()
	}
}

// listed tells the memo how large a list was.
func (d *decoder[T]) listed(objects, bytes int) {
	if d.memo != nil {
		d.memo.Listed(objects, bytes)
	}
}

var (
	errForm       = errors.New("the value is neither protobuf nor JSON nor CBOR")
	errNoProtobuf = errors.New("the value is protobuf, which this Go type has no code for: read it as its own type")
	errCBOR       = errors.New("the value is malformed CBOR, or a field has a value that its type does not take")
	errNoKind     = errors.New("the value has no kind")
	errOtherKey   = errors.New("the value is another object's than its key says")
)

// object decodes a value. Key is the store key that its etcd key stands for. A change is decoded
// beside the last state of the object, if the reader has it.
func (d *decoder[T]) object(key string, value []byte, revision int64, last sharing.Last) (obj T, err error) {
	var none T
	switch {
	case d.decrypt != nil:
		plain, err := d.decrypt(key, value)
		if err != nil {
			return none, undecrypted(value, err)
		}
		value = plain
	case bytes.HasPrefix(value, []byte(encrypted)):
		return none, encryptedBy(value)
	}
	switch {
	case bytes.HasPrefix(value, []byte(wire.Magic)):
		obj, err = d.protobuf(value[len(wire.Magic):], last)
	case bytes.HasPrefix(value, []byte(wire.CBORMagic)):
		obj, err = d.cbor(value)
	case len(value) > 0 && (value[0] == '{' || wire.IsSpace(value[0])):
		obj, err = d.json(value)
	default:
		err = errForm
	}
	switch {
	case err != nil:
		return none, err
	case store.KeyOf(obj) != key:
		return none, errOtherKey
	}
	d.settle(obj, revision)
	return obj, nil
}

// settle gives an object its version. Documents may share the values in their maps.
func (d *decoder[T]) settle(obj T, revision int64) {
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		if metadata, ok := u.Object["metadata"].(map[string]any); ok {
			u.Object["metadata"] = maps.Clone(metadata)
		}
	}
	obj.SetResourceVersion(strconv.FormatInt(revision, 10))
}

// standIn is an object of which nothing is known but its name: its last state is gone, or cannot be
// decoded.
func (d *decoder[T]) standIn(key string, revision int64) T {
	obj := d.new()
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		namespace, name = "", key
	}
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		u.Object = map[string]any{}
	}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetResourceVersion(strconv.FormatInt(revision, 10))
	return obj
}

// envelopeFields is how many fields runtime.Unknown has; all are length-delimited.
const envelopeFields = 4

func (d *decoder[T]) protobuf(envelope []byte, last sharing.Last) (obj T, err error) {
	var none T
	var head runtime.TypeMeta
	var raw []byte
	err = wire.EachField(envelope, envelopeFields, func(field int, data []byte) error {
		switch field {
		case wire.UnknownTypeMeta:
			return head.Unmarshal(data)
		case wire.UnknownRaw:
			raw = data
		}
		return nil
	})
	if err != nil {
		return none, wire.ErrProtobuf
	}
	kind := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind)
	if err := d.check(kind); err != nil {
		return none, err
	}
	obj = d.new()
	message, ok := any(obj).(unmarshaler)
	if !ok {
		return none, errNoProtobuf
	}
	if _, err = d.memo.UnmarshalAfter(last, raw, message); err != nil {
		return none, wire.ErrProtobuf
	}
	d.setKind(obj, kind)
	return obj, nil
}

func (d *decoder[T]) json(data []byte) (obj T, err error) {
	var none T
	if d.convert != nil {
		if data, err = d.convert(data); err != nil {
			return none, fmt.Errorf("the value cannot be converted: %w", err)
		}
	}
	obj = d.new()
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		if d.memo != nil {
			u.Object, err = d.memo.UnmarshalTree(data)
		} else {
			err = kjson.UnmarshalCaseSensitivePreserveInts(data, &u.Object)
		}
	} else if d.memo != nil {
		err = d.memo.UnmarshalTyped(data, obj)
	} else {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, obj)
	}
	if err != nil { // its text may quote the value
		return none, errors.New("the value is malformed JSON, or a field has a value that its type does not take")
	}
	return d.ofItsKind(obj)
}

// cbor decodes as the API machinery does, and shares no parts: kube-apiserver writes CBOR only
// behind an alpha gate.
func (d *decoder[T]) cbor(value []byte) (obj T, err error) {
	var none T
	var tree map[string]any
	if direct.Unmarshal(value, &tree) != nil { // the error may quote the value
		return none, errCBOR
	}
	if d.convert != nil {
		text, err := json.Marshal(tree)
		if err != nil {
			return none, errCBOR
		}
		return d.json(text)
	}
	obj = d.new()
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		u.Object = tree
	} else if runtime.DefaultUnstructuredConverter.FromUnstructured(tree, obj) != nil {
		return none, errCBOR
	}
	return d.ofItsKind(obj)
}

// ofItsKind checks the kind of an object and returns the object.
func (d *decoder[T]) ofItsKind(obj T) (T, error) {
	kind := obj.GetObjectKind().GroupVersionKind()
	if err := d.check(kind); err != nil {
		var none T
		return none, err
	}
	d.setKind(obj, kind)
	return obj, nil
}

// check compares the kind of a value with the kind of the source.
func (d *decoder[T]) check(kind schema.GroupVersionKind) error {
	switch apiVersion := kind.GroupVersion().String(); {
	case kind.Kind == "":
		return errNoKind
	case d.kind != "" && kind.Kind != d.kind:
		return fmt.Errorf("the value is a %s, not a %s", kind.Kind, d.kind)
	case d.apiVersion != "" && apiVersion != d.apiVersion:
		return fmt.Errorf("the value was stored as %s, not as %s: nothing is converted", apiVersion, d.apiVersion)
	}
	return nil
}

// setKind: a Go type knows its kind; documents and metadata keep the kind in the value.
func (d *decoder[T]) setKind(obj T, kind schema.GroupVersionKind) {
	switch any(obj).(type) {
	case *unstructured.Unstructured:
	case *metav1.PartialObjectMetadata:
		obj.GetObjectKind().SetGroupVersionKind(kind)
	default:
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
}
