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

	"github.com/tributary-go/tributary/store"
)

// Kubernetes' protobuf, as it is on the wire (API concepts, "Kubernetes Protobuf encoding"):
//
//	envelope = magic, Unknown{1: TypeMeta, 2: message, 3: content encoding, 4: content type}
//	list     = {1: ListMeta, 2: item, 2: item, …}
//	watch    = (4 bytes big-endian length, WatchEvent{1: type, 2: RawExtension{1: envelope}})*
const protobufMagic = "k8s\x00"

const (
	typeMetaField = 1 // of an envelope
	messageField  = 2
	listMetaField = 1 // of a list
	itemField     = 2
	eventField    = 1 // of a watch event
	objectField   = 2
	rawField      = 1 // of a RawExtension
)

// How many fields these messages have. All of them are length-delimited, so another wire type is malformed.
const (
	envelopeFields = 4
	listFields     = 2
	eventFields    = 2
	rawFields      = 1
)

const (
	maxHead   = 1 << 8    // bytes of a TypeMeta that is remembered
	wireBytes = 2         // the wire type of strings, bytes and messages
	maxField  = 1<<29 - 1 // the highest field number of protobuf
)

// protobufList reads an envelope around a list, item by item.
func (d *decoder[T]) protobufList(r *bufio.Reader, yield func(T, error) bool) (meta metav1.ListMeta, err error) {
	_, _ = r.Discard(len(protobufMagic))
	in := &wireReader{r: r, limit: d.limit, end: math.MaxUint64}
	var head runtime.TypeMeta
	listed := false
	for {
		field, wire, err := in.tag(envelopeFields)
		switch {
		case err == io.EOF && listed:
			return meta, nil
		case err != nil:
		case field == typeMetaField:
			if err = in.typeMeta(&head); err == nil {
				err = d.checkList(head.Kind)
			}
		case field == messageField && listed:
			err = errMalformed // the last one would count, and the items of the first are out already
		case field == messageField:
			listed = true
			err = d.protobufItems(in, itemKind(head.APIVersion, head.Kind), &meta, yield)
		default:
			err = in.skip(wire)
		}
		if err != nil {
			return meta, unexpected(err)
		}
	}
}

// itemKind is what a list says of its items.
func itemKind(listAPIVersion, listKind string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(listAPIVersion, strings.TrimSuffix(listKind, "List"))
}

// protobufItems reads the list message itself.
func (d *decoder[T]) protobufItems(in *wireReader, gvk schema.GroupVersionKind, meta *metav1.ListMeta, yield func(T, error) bool) error {
	size, err := in.varint()
	if err != nil {
		return err
	}
	if size > math.MaxInt64 {
		return errMalformed
	}
	in.end = in.read + size
	defer func() { in.end = math.MaxUint64 }()
	for in.read < in.end {
		field, wire, err := in.tag(listFields)
		switch {
		case err != nil:
		case field == listMetaField:
			var data []byte
			if data, err = in.bytes(); err == nil && meta.Unmarshal(data) != nil {
				err = errMalformed
			}
		case field == itemField:
			var data []byte
			if data, err = in.bytes(); err == nil {
				err = d.yieldItem(data, gvk, yield)
			}
		default:
			err = in.skip(wire)
		}
		if err != nil {
			return err
		}
	}
	if in.read > in.end {
		return errMalformed
	}
	return nil
}

func (d *decoder[T]) yieldItem(data []byte, gvk schema.GroupVersionKind, yield func(T, error) bool) error {
	obj, err := d.held.item(protobufIdentity, data, func() (T, error) { return d.protobufObject(data, gvk, nil) })
	if err != nil {
		var none T
		obj, err = none, &DecodeError{Op: "list", Object: d.keyIn(data, false), Err: err}
	}
	if !yield(obj, err) {
		return errStopped
	}
	return nil
}

// protobufFrames are the frames of a watch.
type protobufFrames[T store.Object] struct {
	own       *bufio.Reader
	r         *bufio.Reader // own, or a large one that reads from it while more comes than fits there
	limit     int
	head      [4]byte
	buffer    []byte // of a frame that is too large for a reader
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
	f.event, f.object, f.malformed = openWatchEvent(data)
	if f.malformed == nil {
		f.kind, f.message, f.sealed = p.envelopes.open(f.object)
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

// close gives the large reader back, in which nothing is.
func (p *protobufFrames[T]) close() {
	if p.r != p.own {
		putLargeReader(p.r)
		p.r = p.own
	}
}

// openWatchEvent takes a WatchEvent apart without copying the object.
func openWatchEvent(data []byte) (event string, object []byte, err error) {
	err = eachField(data, eventFields, func(field int, value []byte) error {
		switch field {
		case eventField:
			event = eventName(value)
		case objectField:
			return eachField(value, rawFields, func(field int, value []byte) error {
				if field == rawField {
					object = value
				}
				return nil
			})
		}
		return nil
	})
	return event, object, err
}

// eventName is the name of an event, without a string for each.
func eventName(name []byte) string {
	for _, known := range []watch.EventType{watch.Modified, watch.Added, watch.Deleted, watch.Bookmark, watch.Error} {
		if string(name) == string(known) {
			return string(known)
		}
	}
	return string(name)
}

// envelopes are those of one stream, most of which name the same kind.
type envelopes struct {
	last []byte // head, on the wire
	head runtime.TypeMeta
}

// open takes an envelope apart without copying the message.
func (e *envelopes) open(data []byte) (gvk schema.GroupVersionKind, message []byte, err error) {
	if len(data) < len(protobufMagic) || string(data[:len(protobufMagic)]) != protobufMagic {
		return gvk, nil, errMalformed
	}
	var head runtime.TypeMeta
	heads := 0
	err = eachField(data[len(protobufMagic):], envelopeFields, func(field int, value []byte) error {
		switch field {
		case typeMetaField:
			if heads++; heads == 1 && string(value) == string(e.last) {
				head = e.head
				return nil
			}
			if head.Unmarshal(value) != nil {
				return errMalformed
			}
			if heads == 1 && len(value) <= maxHead {
				e.last, e.head = append(e.last[:0], value...), head
			}
		case messageField:
			message = value
		}
		return nil
	})
	return schema.FromAPIVersionAndKind(head.APIVersion, head.Kind), message, err
}

// eachField calls do for each length-delimited field of a message in memory, and skips the others. Fields up to the
// number known must be length-delimited.
func eachField(data []byte, known int, do func(field int, value []byte) error) error {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 {
			return errMalformed
		}
		data = data[n:]
		field, wire, err := splitTag(tag, known)
		if err != nil {
			return err
		}
		size, n := uint64(0), 0
		switch wire {
		case 0:
			_, n = binary.Uvarint(data)
		case 1:
			n = 8
		case wireBytes:
			size, n = binary.Uvarint(data)
		case 5:
			n = 4
		}
		if n <= 0 || n > len(data) || size > uint64(len(data)-n) {
			return errMalformed
		}
		if wire == wireBytes {
			if err := do(field, data[n:n+int(size)]); err != nil {
				return err
			}
		}
		data = data[n+int(size):]
	}
	return nil
}

// splitTag takes a tag apart and refuses what the message cannot have.
func splitTag(tag uint64, known int) (field, wire int, err error) {
	if tag>>3 == 0 || tag>>3 > maxField {
		return 0, 0, errMalformed
	}
	field, wire = int(tag>>3), int(tag&7)
	if field <= known && wire != wireBytes {
		return 0, 0, errMalformed
	}
	return field, wire, nil
}

// wireReader reads the fields of a message from a stream and counts what it has read.
type wireReader struct {
	r      *bufio.Reader
	read   uint64
	end    uint64 // of the message in which the fields are: none may reach past it
	limit  int
	buffer []byte // of bytes
}

// ReadByte lets binary.ReadUvarint count.
func (w *wireReader) ReadByte() (byte, error) {
	b, err := w.r.ReadByte()
	if err == nil {
		w.read++
	}
	return b, err
}

// tag reads the next field's number and wire type; io.EOF at the end of the stream. Fields up to the number known
// must be length-delimited.
func (w *wireReader) tag(known int) (field, wire int, err error) {
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

// allows says whether a value of that size may be read here.
func (w *wireReader) allows(size uint64) error {
	switch {
	case w.read > w.end || size > w.end-w.read:
		return errMalformed
	case size > uint64(w.limit):
		return tooLarge(w.limit)
	}
	return nil
}

// bytes reads a length-delimited value; it is valid until something is read that r has not buffered.
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
		return errMalformed
	}
	return err
}

// skip passes over the value of a field that is not known here.
func (w *wireReader) skip(wire int) error {
	size := uint64(0)
	var err error
	switch wire {
	case 0:
		_, err = w.varint()
	case 1:
		size = 8
	case wireBytes:
		size, err = w.varint()
	case 5:
		size = 4
	default:
		return errMalformed
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

// spare is a buffer for the next object, without what was in it.
func spare(buffer []byte) []byte {
	if cap(buffer) > maxSpare {
		return nil
	}
	return buffer[:0]
}

// readInto reads size bytes into buffer, which it grows in steps: a length that lies costs no memory.
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

// unexpected is for reads in the middle of something.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
