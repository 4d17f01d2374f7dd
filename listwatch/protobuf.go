package listwatch

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/checked"
	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/internal/wire"
	"github.com/tributary-go/tributary/store"
)

// Kubernetes' protobuf on the wire (API concepts, "Kubernetes Protobuf encoding"):
//
//	envelope = magic, Unknown{1: TypeMeta, 2: message, 3: content encoding, 4: content type}
//	list     = {1: ListMeta, 2: item, 2: item, …}
//	watch    = (4 bytes big-endian length, WatchEvent{1: type, 2: RawExtension{1: envelope}})*

// The number of fields of these messages. All are length-delimited, so another wire type is
// malformed.
const (
	envelopeFields  = 4
	listFields      = 2
	eventFields     = 2
	extensionFields = 1
)

const maxHead = 1 << 8 // the largest TypeMeta that is remembered

type protobufEncoding[T store.Object] struct{ *decoder[T] }

// begins: a watch begins with the length of its first frame, whose first byte is small; text is
// not.
func (protobufEncoding[T]) begins(start []byte, stream bool) bool {
	if stream {
		return start[0] <= ' '
	}
	return string(start) == wire.Magic
}

func (e protobufEncoding[T]) frames(r *bufio.Reader) (frames[T], error) {
	if !e.protobuf {
		return nil, errNoProtobuf
	}
	return &protobufFrames[T]{own: r, r: r, limit: e.limit, memo: e.memo, lean: e.cut(e.lean), fleeting: e.fleeting}, nil
}

func (e protobufEncoding[T]) list(r *bufio.Reader, items *items[T]) (meta metav1.ListMeta, err error) {
	if !e.protobuf {
		return meta, errNoProtobuf
	}
	_, _ = r.Discard(len(wire.Magic))
	in := &wireReader{r: r, limit: e.limit, end: math.MaxUint64}
	var head runtime.TypeMeta
	listed := false
	for {
		field, format, err := in.tag(envelopeFields)
		switch {
		case err == io.EOF && listed:
			return meta, nil
		case err != nil:
		case field == wire.UnknownTypeMeta:
			if err = in.typeMeta(&head); err == nil {
				err = e.checkList(head.Kind)
			}
		case field == wire.UnknownRaw && listed:
			err = wire.ErrProtobuf // the last field wins, but the first items were yielded
		case field == wire.UnknownRaw:
			listed = true
			err = readItems(in, itemKind(head.APIVersion, head.Kind), &meta, items)
		default:
			err = in.skip(format)
		}
		if err != nil {
			return meta, unexpected(err)
		}
	}
}

// itemKind is the items' kind by the list.
func itemKind(listAPIVersion, listKind string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(listAPIVersion, strings.TrimSuffix(listKind, "List"))
}

// readItems reads the list message itself.
func readItems[T store.Object](in *wireReader, gvk schema.GroupVersionKind, meta *metav1.ListMeta, items *items[T]) error {
	size, err := in.varint()
	if err != nil {
		return err
	}
	if size > math.MaxInt64 {
		return wire.ErrProtobuf
	}
	in.end = in.read + size
	defer func() { in.end = math.MaxUint64 }()
	for in.read < in.end {
		field, format, err := in.tag(listFields)
		switch {
		case err != nil:
		case field == wire.ListMeta:
			var data []byte
			if data, err = in.bytes(); err == nil && meta.Unmarshal(data) != nil {
				err = wire.ErrProtobuf
			}
		case field == wire.ListItems:
			var data []byte
			if data, err = in.bytes(); err == nil {
				err = items.take(data, gvk)
			}
		default:
			err = in.skip(format)
		}
		if err != nil {
			return err
		}
	}
	if in.read > in.end {
		return wire.ErrProtobuf
	}
	return nil
}

type protobufFrames[T store.Object] struct {
	own       *bufio.Reader
	r         *bufio.Reader // own, or a large one over it while frames are too large for own
	limit     int
	memo      *sharing.Memo
	lean      func(data []byte) []byte // nil if objects stay as they are
	fleeting  bool
	head      [4]byte
	buffer    []byte // holds a frame that is too large for either reader
	envelopes envelopes
}

func (p *protobufFrames[T]) next() (f frame[T], err error) {
	if p.r.Buffered() == 0 {
		p.close()
		p.buffer = spare(p.buffer)
	}
	if _, err = io.ReadFull(p.r, p.head[:]); err != nil {
		return f, err
	}
	size := binary.BigEndian.Uint32(p.head[:])
	if uint64(size) > uint64(p.limit) {
		return f, tooLarge(p.limit)
	}
	if p.r == p.own && int(size) > p.own.Buffered() {
		p.r = largeReader(p.own)
	}
	data, err := part(p.r, &p.buffer, int(size))
	if err != nil {
		return f, err
	}
	var envelope []byte
	f.event, envelope, f.malformed = openWatchEvent(data)
	if f.malformed == nil {
		f.kind, f.object, f.sealed = p.envelopes.open(envelope)
	}
	if f.sealed == nil && f.kind.Kind == "" && f.event != string(watch.Error) {
		f.sealed = errNoKind
	}
	if f.size = len(f.object); p.lean != nil {
		f.object = p.lean(f.object)
	}
	if f.event != string(watch.Modified) || p.memo.Follows(len(f.object)) {
		f.identity = protobufIdentity(f.object)
	}
	return f, nil
}

func (p *protobufFrames[T]) waits() bool {
	if p.r.Buffered() < len(p.head) {
		return false
	}
	head, _ := p.r.Peek(len(p.head))
	size := uint64(binary.BigEndian.Uint32(head))
	return size <= uint64(p.limit) && size <= uint64(p.r.Buffered()-len(p.head))
}

// close returns the large reader, which must be empty.
func (p *protobufFrames[T]) close() {
	if p.r != p.own {
		putLargeReader(p.r, p.fleeting)
		p.r = p.own
	}
}

// openWatchEvent splits a WatchEvent without copying the object.
func openWatchEvent(data []byte) (event string, object []byte, err error) {
	err = wire.EachField(data, eventFields, func(field int, value []byte) error {
		switch field {
		case wire.EventType:
			event, _ = eventName(value)
		case wire.EventObject:
			return wire.EachField(value, extensionFields, func(field int, value []byte) error {
				if field == wire.ExtensionRaw {
					object = value
				}
				return nil
			})
		}
		return nil
	})
	return event, object, err
}

// envelopes remembers a stream's last TypeMeta, since most envelopes name the same kind.
type envelopes struct {
	last []byte // head on the wire
	head runtime.TypeMeta
}

// open splits an envelope without copying the message.
func (e *envelopes) open(data []byte) (gvk schema.GroupVersionKind, message []byte, err error) {
	if len(data) < len(wire.Magic) || string(data[:len(wire.Magic)]) != wire.Magic {
		return gvk, nil, wire.ErrProtobuf
	}
	var head runtime.TypeMeta
	heads := 0
	err = wire.EachField(data[len(wire.Magic):], envelopeFields, func(field int, value []byte) error {
		switch field {
		case wire.UnknownTypeMeta:
			if heads++; heads == 1 && string(value) == string(e.last) {
				head = e.head
				return nil
			}
			if head.Unmarshal(value) != nil {
				return wire.ErrProtobuf
			}
			if heads == 1 && len(value) <= maxHead {
				e.last, e.head = append(e.last[:0], value...), head
			}
		case wire.UnknownRaw:
			message = value
		}
		return nil
	})
	return schema.FromAPIVersionAndKind(head.APIVersion, head.Kind), message, err
}

// splitTag splits a tag, and refuses tags that the message cannot have.
func splitTag(tag uint64, known int) (field, format int, err error) {
	if tag>>3 == 0 || tag>>3 > wire.MaxField {
		return 0, 0, wire.ErrProtobuf
	}
	field, format = int(tag>>3), int(tag&7)
	if field <= known && format != wire.Bytes {
		return 0, 0, wire.ErrProtobuf
	}
	return field, format, nil
}

// wireReader reads the fields of a message from a stream, and counts its bytes.
type wireReader struct {
	r      *bufio.Reader
	read   uint64
	end    uint64 // the end of the enclosing message, a bound for its fields
	limit  int
	buffer []byte // used by bytes
}

// ReadByte counts the bytes that binary.ReadUvarint reads.
func (w *wireReader) ReadByte() (byte, error) {
	b, err := w.r.ReadByte()
	if err == nil {
		w.read++
	}
	return b, err
}

// tag reads the next field's number and wire type; io.EOF at the end of the stream. Fields up to
// the number known must be length-delimited.
func (w *wireReader) tag(known int) (field, format int, err error) {
	tag, err := binary.ReadUvarint(w)
	if err != nil {
		return 0, 0, err
	}
	return splitTag(tag, known)
}

func (w *wireReader) varint() (uint64, error) {
	n, err := binary.ReadUvarint(w)
	return n, unexpected(err)
}

// allows refuses a value that passes the message's end or the limit.
func (w *wireReader) allows(size uint64) error {
	switch {
	case w.read > w.end || size > w.end-w.read:
		return wire.ErrProtobuf
	case size > uint64(w.limit):
		return tooLarge(w.limit)
	}
	return nil
}

// bytes reads a length-delimited value, which stays valid until r must fill its buffer.
func (w *wireReader) bytes() ([]byte, error) {
	size, err := w.varint()
	if err != nil {
		return nil, err
	}
	if err := w.allows(size); err != nil {
		return nil, err
	}
	data, err := part(w.r, &w.buffer, int(size))
	w.read += size
	return data, err
}

func (w *wireReader) typeMeta(into *runtime.TypeMeta) error {
	data, err := w.bytes()
	if err == nil && into.Unmarshal(data) != nil {
		return wire.ErrProtobuf
	}
	return err
}

// skip skips the value of an unknown field.
func (w *wireReader) skip(format int) error {
	size := uint64(0)
	var err error
	switch format {
	case wire.Varint:
		_, err = w.varint()
	case wire.Fixed64:
		size = 8
	case wire.Bytes:
		size, err = w.varint()
	case wire.Fixed32:
		size = 4
	default:
		return wire.ErrProtobuf
	}
	if err != nil {
		return err
	}
	if err := w.allows(size); err != nil {
		return err
	}
	n, err := w.r.Discard(int(size))
	w.read += uint64(n)
	return unexpected(err)
}

// maxSpare is the largest buffer that a watch keeps for its next object.
const maxSpare = 64 << 10

// spare empties a buffer for the next object, or drops it if it is large.
func spare(buffer []byte) []byte {
	if cap(buffer) > maxSpare {
		return nil
	}
	return buffer[:0]
}

// part reads size bytes, which stay valid until r must fill its buffer. into takes a value that is
// too large for r.
func part(r *bufio.Reader, into *[]byte, size int) (data []byte, err error) {
	if size > r.Size() {
		*into, err = readInto(r, *into, size)
		return *into, err
	}
	if data, err = r.Peek(size); err != nil {
		return data, unexpected(err)
	}
	_, err = r.Discard(size)
	return data, err
}

// readInto reads size bytes into buffer, which it grows in steps: a false length costs no memory.
func readInto(r io.Reader, buffer []byte, size int) ([]byte, error) {
	const step = 1 << 20
	buffer = buffer[:0]
	for len(buffer) < size {
		n := min(size-len(buffer), step)
		if cap(buffer)-len(buffer) < n {
			grown := make([]byte, len(buffer), max(2*cap(buffer), len(buffer)+n))
			copy(grown, buffer)
			buffer = grown
		}
		part := buffer[len(buffer) : len(buffer)+n]
		if _, err := io.ReadFull(r, part); err != nil {
			return buffer, unexpected(err)
		}
		buffer = buffer[:len(buffer)+n]
	}
	return buffer, nil
}

// object decodes one message. Generated code copies the bytes that it keeps.
func (e protobufEncoding[T]) object(data []byte, gvk schema.GroupVersionKind, last sharing.Last) (obj T, notes sharing.Notes, err error) {
	var none T
	if err := e.check(gvk.Kind); err != nil {
		return none, nil, err
	}
	obj = e.new()
	message, ok := any(obj).(unmarshaler)
	if !ok {
		return none, nil, errNoProtobuf
	}
	if notes, err = e.memo.UnmarshalAfter(last, data, message); err != nil {
		return none, nil, wire.ErrProtobuf
	}
	if e.kind == "" {
		obj.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return e.dropped(obj), notes, nil
}

func (protobufEncoding[T]) status(data []byte, into *metav1.Status) error {
	return into.Unmarshal(data)
}

func (protobufEncoding[T]) key(data []byte) string {
	var head metav1.PartialObjectMetadata
	_ = head.Unmarshal(data)
	return store.KeyOf(&head)
}

func (protobufEncoding[T]) lean(data []byte) []byte { return checked.Lean(data) }

func (protobufEncoding[T]) identity(data []byte) identity { return protobufIdentity(data) }

// The fields of ObjectMeta that make an identity.
const (
	metadataField  = 1 // in an object
	nameField      = 1
	namespaceField = 3
	uidField       = 5
	versionField   = 6
)

// protobufIdentity is empty unless the metadata comes in one part, and each field once.
func protobufIdentity(data []byte) identity {
	var id identity
	parts := 0
	err := wire.EachField(data, metadataField, func(field int, value []byte) error {
		if field != metadataField {
			return nil
		}
		parts++
		return wire.EachField(value, versionField, func(field int, value []byte) error {
			var into *[]byte
			switch field {
			case nameField:
				into = &id.name
			case namespaceField:
				into = &id.namespace
			case uidField:
				into = &id.uid
			case versionField:
				into = &id.resourceVersion
			default:
				return nil
			}
			if *into != nil {
				return wire.ErrProtobuf
			}
			*into = value
			return nil
		})
	})
	if err != nil || parts != 1 {
		return identity{}
	}
	return id
}
