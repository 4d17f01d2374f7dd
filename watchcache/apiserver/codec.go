package apiserver

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
)

// codec writes objects of one resource in every format.
type codec[T store.Object] struct {
	resource watchcache.Resource[T]
	columns  []watchcache.Column[T]
}

// message is a type with generated protobuf code.
type message interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
}

// protobufPrefix opens every protobuf document; what follows is a runtime.Unknown.
const protobufPrefix = "k8s\x00"

// speaksProtobuf reports whether T has generated protobuf code.
func speaksProtobuf[T store.Object]() bool {
	var none T
	_, ok := any(none).(message)
	return ok
}

// object is a whole document.
func (c codec[T]) object(f format, obj T) ([]byte, error) {
	kind := typeMeta(f.kindOr(c.resource.GroupVersionKind()))
	switch {
	case f.protobuf:
		m := c.message(f, obj)
		return marshalInto(envelope(kind, m.Size()), m)
	case f.view == asTable:
		row, err := c.row(f, obj)
		if err != nil {
			return nil, err
		}
		return json.Marshal(metav1.Table{
			TypeMeta: kind, ListMeta: metav1.ListMeta{ResourceVersion: obj.GetResourceVersion()},
			ColumnDefinitions: c.definitions(), Rows: []metav1.TableRow{row},
		})
	}
	doc, err := json.Marshal(c.document(f, obj))
	if err != nil || !obj.GetObjectKind().GroupVersionKind().Empty() || f.view == asMetadata {
		return doc, err
	}
	return append([]byte(fmt.Sprintf(`{"kind":%q,"apiVersion":%q,`, kind.Kind, kind.APIVersion)), doc[1:]...), nil
}

// item is an object inside a JSON list.
func (c codec[T]) item(f format, obj T) ([]byte, error) {
	if f.view != asTable {
		return json.Marshal(c.document(f, obj))
	}
	row, err := c.row(f, obj)
	if err != nil {
		return nil, err
	}
	return json.Marshal(row)
}

// document is what of an object is written in JSON.
func (c codec[T]) document(f format, obj T) any {
	if f.view == asMetadata {
		return metadataOf(obj)
	}
	return obj
}

// message is what of an object is written in protobuf.
func (c codec[T]) message(f format, obj T) message {
	if f.view == asMetadata {
		return metadataOf(obj)
	}
	return any(obj).(message)
}

func metadataOf(obj metav1.Object) *metav1.PartialObjectMetadata {
	partial := meta.AsPartialObjectMetadata(obj)
	partial.TypeMeta = metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}
	return partial
}

// event is one frame of a watch.
func (c codec[T]) event(f format, e listwatch.Event[T]) ([]byte, error) {
	obj := e.Object
	if e.Type == watch.Bookmark {
		obj = c.resource.Bookmark(e.ResourceVersion, e.InitialEventsEnd)
	}
	doc, err := c.object(f, obj)
	if err != nil {
		return nil, fmt.Errorf("apiserver: encode %s %s: %w", c.resource.Plural, store.KeyOf(obj), err)
	}
	return frameOf(f, e.Type, doc)
}

// frameOf wraps a document: in JSON one line, in protobuf four bytes of length and a WatchEvent.
func frameOf(f format, event watch.EventType, doc []byte) ([]byte, error) {
	if !f.protobuf {
		line := make([]byte, 0, len(doc)+len(`{"type":"","object":}`)+len(event)+1)
		line = append(append(append(line, `{"type":"`...), event...), `","object":`...)
		return append(append(line, doc...), "}\n"...), nil
	}
	m := &metav1.WatchEvent{Type: string(event), Object: runtime.RawExtension{Raw: doc}}
	return marshalInto(binary.BigEndian.AppendUint32(nil, uint32(m.Size())), m)
}

// statusDocument is a Status as a whole document.
func statusDocument(f format, status *metav1.Status) ([]byte, error) {
	if f.protobuf {
		return marshalInto(envelope(status.TypeMeta, status.Size()), status)
	}
	return json.Marshal(status)
}

// kindOr is the kind and API version of an object in this format.
func (f format) kindOr(kind schema.GroupVersionKind) (name, apiVersion string) {
	switch f.view {
	case asMetadata:
		return "PartialObjectMetadata", metav1.SchemeGroupVersion.String()
	case asTable:
		return "Table", metav1.SchemeGroupVersion.String()
	}
	return kind.Kind, kind.GroupVersion().String()
}

func typeMeta(kind, apiVersion string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: apiVersion}
}

// The fields of runtime.Unknown and of every list, as tags on the wire.
const (
	unknownTypeMeta = 1<<3 | 2
	unknownRaw      = 2<<3 | 2
	listMeta        = 1<<3 | 2
	listItems       = 2<<3 | 2
)

// envelope is what comes before the raw bytes of a protobuf document of the given size.
func envelope(kind metav1.TypeMeta, size int) []byte {
	inner := runtime.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind}
	head := append([]byte(protobufPrefix), unknownTypeMeta)
	head = binary.AppendUvarint(head, uint64(inner.Size()))
	head, err := marshalInto(head, &inner)
	if err != nil {
		panic(err) // two strings into a buffer of their size
	}
	return binary.AppendUvarint(append(head, unknownRaw), uint64(size))
}

// marshalInto appends a message to head.
func marshalInto(head []byte, m message) ([]byte, error) {
	size := m.Size()
	whole := append(head, make([]byte, size)...)
	_, err := m.MarshalToSizedBuffer(whole[len(head):])
	return whole, err
}
