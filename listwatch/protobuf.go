package listwatch

import (
	"bufio"
	"encoding/binary"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

const wireBytes = 2 // the wire type of strings, bytes and messages

// protobufList reads an envelope around a list, item by item.
func (d *decoder[T]) protobufList(r *bufio.Reader, yield func(T, error) bool) (meta metav1.ListMeta, err error) {
	_, _ = r.Discard(len(protobufMagic))
	in := &wireReader{r: r, limit: d.limit}
	var item schema.GroupVersionKind
	for {
		field, wire, err := in.tag()
		switch {
		case err == io.EOF:
			return meta, nil
		case err != nil:
			return meta, err
		case field == typeMetaField && wire == wireBytes:
			var list schema.GroupVersionKind
			if list, err = in.typeMeta(); err == nil {
				err = d.checkList(list.Kind)
			}
			item = list.GroupVersion().WithKind(strings.TrimSuffix(list.Kind, "List"))
		case field == messageField && wire == wireBytes:
			err = d.protobufItems(in, item, &meta, yield)
		default:
			err = in.skip(wire)
		}
		if err != nil {
			return meta, unexpected(err)
		}
	}
}

// protobufItems reads the list message itself.
func (d *decoder[T]) protobufItems(in *wireReader, gvk schema.GroupVersionKind, meta *metav1.ListMeta, yield func(T, error) bool) error {
	size, err := in.varint()
	if err != nil {
		return err
	}
	for end := in.read + size; in.read < end; {
		field, wire, err := in.tag()
		switch {
		case err != nil:
		case field == listMetaField && wire == wireBytes:
			var data []byte
			if data, err = in.bytes(); err == nil && meta.Unmarshal(data) != nil {
				err = errMalformed
			}
		case field == itemField && wire == wireBytes:
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
	return nil
}

func (d *decoder[T]) yieldItem(data []byte, gvk schema.GroupVersionKind, yield func(T, error) bool) error {
	obj, err := d.protobufObject(data, gvk)
	if err != nil {
		var none T
		obj, err = none, &DecodeError{Op: "list", Object: d.keyIn(data, false), Err: err}
	}
	if !yield(obj, err) {
		return errStopped
	}
	return nil
}

// protobufFrames returns the reader of the frames of a watch.
func (d *decoder[T]) protobufFrames(r *bufio.Reader) func() (frame, error) {
	var head [4]byte
	var buffer []byte
	return func() (f frame, err error) {
		if _, err = io.ReadFull(r, head[:]); err != nil {
			return f, err
		}
		size := binary.BigEndian.Uint32(head[:])
		if uint64(size) > uint64(d.limit) {
			return f, tooLarge(d.limit)
		}
		if buffer, err = readInto(r, buffer, int(size)); err != nil {
			return f, err
		}
		f.event, f.object, err = openWatchEvent(buffer)
		return f, err
	}
}

// openWatchEvent takes a WatchEvent apart without copying the object.
func openWatchEvent(data []byte) (event string, object []byte, err error) {
	err = eachField(data, func(field int, value []byte) error {
		switch field {
		case eventField:
			event = string(value)
		case objectField:
			return eachField(value, func(field int, value []byte) error {
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

// openEnvelope takes an envelope apart without copying the message.
func openEnvelope(data []byte) (gvk schema.GroupVersionKind, message []byte, err error) {
	if len(data) < len(protobufMagic) || string(data[:len(protobufMagic)]) != protobufMagic {
		return gvk, nil, errMalformed
	}
	err = eachField(data[len(protobufMagic):], func(field int, value []byte) error {
		switch field {
		case typeMetaField:
			var meta runtime.TypeMeta
			if meta.Unmarshal(value) != nil {
				return errMalformed
			}
			gvk = schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind)
		case messageField:
			message = value
		}
		return nil
	})
	return gvk, message, err
}

// eachField calls do for each length-delimited field of a message in memory, and skips the others.
func eachField(data []byte, do func(field int, value []byte) error) error {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 {
			return errMalformed
		}
		data = data[n:]
		size, n := uint64(0), 0
		switch tag & 7 {
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
		if tag&7 == wireBytes {
			if err := do(int(tag>>3), data[n:n+int(size)]); err != nil {
				return err
			}
		}
		data = data[n+int(size):]
	}
	return nil
}

// wireReader reads the fields of a message from a stream and counts what it has read.
type wireReader struct {
	r      *bufio.Reader
	read   uint64
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

// tag reads the next field's number and wire type; io.EOF at the end of the stream.
func (w *wireReader) tag() (field int, wire int, err error) {
	tag, err := binary.ReadUvarint(w)
	return int(tag >> 3), int(tag & 7), err
}

func (w *wireReader) varint() (uint64, error) {
	n, err := binary.ReadUvarint(w)
	return n, unexpected(err)
}

// bytes reads a length-delimited value; it is valid until the next call.
func (w *wireReader) bytes() ([]byte, error) {
	size, err := w.varint()
	if err != nil {
		return nil, err
	}
	if size > uint64(w.limit) {
		return nil, tooLarge(w.limit)
	}
	w.buffer, err = readInto(w.r, w.buffer, int(size))
	w.read += size
	return w.buffer, err
}

func (w *wireReader) typeMeta() (gvk schema.GroupVersionKind, err error) {
	data, err := w.bytes()
	if err != nil {
		return gvk, err
	}
	var meta runtime.TypeMeta
	if meta.Unmarshal(data) != nil {
		return gvk, errMalformed
	}
	return schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind), nil
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
	if size > uint64(w.limit) {
		return tooLarge(w.limit)
	}
	n, err := w.r.Discard(int(size))
	w.read += uint64(n)
	return unexpected(err)
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
