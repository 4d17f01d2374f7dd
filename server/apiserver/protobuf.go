package apiserver

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/wire"
	"github.com/tributary-go/tributary/server/internal/apierror"
)

// protobufEncoding is Kubernetes' protobuf: an envelope around each document, and in a watch four
// bytes of length before each event.
type protobufEncoding struct{}

const protobufType = "application/vnd.kubernetes.protobuf"

// message is a type with generated protobuf code.
type message interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
	Unmarshal([]byte) error
}

func (protobufEncoding) contentType(stream bool) string {
	if stream {
		return protobufType + ";stream=watch"
	}
	return protobufType
}

// carries: the cells of a table are free-form values, and metadata has generated code whatever the
// object's type.
func (protobufEncoding) carries(view representation, sample any) bool {
	_, generated := sample.(message)
	return view == asMetadata || view == asItself && generated
}

func (protobufEncoding) document(kind metav1.TypeMeta, obj runtime.Object) ([]byte, error) {
	m := obj.(message)
	return marshalInto(envelope(kind, m.Size()), m)
}

// appendItem: an item is a field of the list's message.
func (protobufEncoding) appendItem(to []byte, item any) ([]byte, error) {
	m := item.(message)
	size := m.Size()
	if to == nil {
		to = make([]byte, 0, itemHead(size)+size)
	}
	return marshalInto(binary.AppendUvarint(append(to, wire.Tag(wire.ListItems)), uint64(size)), m)
}

// itemHead is the length of the head of an item of a size.
func itemHead(size int) int { return 1 + len(binary.AppendUvarint(nil, uint64(size))) }

// list goes over the items twice: the envelope comes first and tells the length of the list.
func (protobufEncoding) list(w *bufio.Writer, l list) error {
	head := binary.AppendUvarint([]byte{wire.Tag(wire.ListMeta)}, uint64(l.meta.Size()))
	head, err := marshalInto(head, &l.meta)
	if err != nil {
		return err
	}
	total, err := l.total()
	if err != nil {
		return err
	}
	_, _ = w.Write(envelope(l.kind, len(head)+total))
	_, _ = w.Write(head)
	written, err := l.write(w, "")
	if err != nil {
		return err
	}
	if written != total {
		return errors.New("apiserver: an object changed while it was listed: stored objects are read-only")
	}
	return nil
}

// total is the length of all items.
func (l list) total() (total int, err error) {
	for i := 0; i < l.size; {
		if end, ok := l.runFrom(i); ok {
			p, err := l.pieceOf(i, end, "")
			if err != nil {
				return 0, err
			}
			total, i = total+p.size, end
			continue
		}
		doc, err := l.items.Shared(i)
		if err != nil {
			return 0, err
		}
		length := len(doc)
		if doc == nil {
			item, err := l.item(i)
			if err != nil {
				return 0, err
			}
			size := item.(message).Size()
			length = itemHead(size) + size
		}
		total, i = total+length, i+1
	}
	return total, nil
}

func (protobufEncoding) frame(event watch.EventType, doc []byte) ([]byte, error) {
	m := &metav1.WatchEvent{Type: string(event), Object: runtime.RawExtension{Raw: doc}}
	return marshalInto(binary.BigEndian.AppendUint32(nil, uint32(m.Size())), m)
}

func (protobufEncoding) read(doc []byte, into any, _ bool) (kind metav1.TypeMeta, objections []error, err error) {
	var unknown runtime.Unknown
	raw, isProtobuf := bytes.CutPrefix(doc, []byte(wire.Magic))
	if !isProtobuf || unknown.Unmarshal(raw) != nil || into.(message).Unmarshal(unknown.Raw) != nil {
		return kind, nil, apierror.BadRequest("the body of the request is not a protobuf document of the type")
	}
	return metav1.TypeMeta{APIVersion: unknown.APIVersion, Kind: unknown.Kind}, nil, nil
}

// envelope is the head before the raw bytes of a document of the given size.
func envelope(kind metav1.TypeMeta, size int) []byte {
	inner := runtime.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind}
	head := append([]byte(wire.Magic), wire.Tag(wire.UnknownTypeMeta))
	head = binary.AppendUvarint(head, uint64(inner.Size()))
	head, err := marshalInto(head, &inner)
	if err != nil {
		panic(err) // two strings into a buffer of their size
	}
	return binary.AppendUvarint(append(head, wire.Tag(wire.UnknownRaw)), uint64(size))
}

// marshalInto appends a message to head.
func marshalInto(head []byte, m message) ([]byte, error) {
	size := m.Size()
	whole := slices.Grow(head, size)[:len(head)+size]
	_, err := m.MarshalToSizedBuffer(whole[len(head):])
	return whole, err
}
