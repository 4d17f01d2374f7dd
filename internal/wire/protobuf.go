package wire

import (
	"encoding/binary"
	"errors"
)

// Magic opens every protobuf document of Kubernetes; a runtime.Unknown follows (API concepts,
// "Kubernetes Protobuf encoding").
const Magic = "k8s\x00"

// CBORMagic is the tag that opens every CBOR document of Kubernetes (RFC 8949, 3.4.6; KEP-4222).
const CBORMagic = "\xd9\xd9\xf7"

// The fields of the messages around the objects.
const (
	UnknownTypeMeta = 1 // of runtime.Unknown
	UnknownRaw      = 2
	ListMeta        = 1 // of every list
	ListItems       = 2
	EventType       = 1 // of metav1.WatchEvent
	EventObject     = 2
	ExtensionRaw    = 1 // of runtime.RawExtension
)

// The wire types of protobuf that Kubernetes uses. Groups are older than Kubernetes.
const (
	Varint  = 0
	Fixed64 = 1
	Bytes   = 2 // strings, bytes and messages
	Fixed32 = 5
)

// MaxField is the highest field number of protobuf.
const MaxField = 1<<29 - 1

// ErrProtobuf is a message that is malformed.
var ErrProtobuf = errors.New("malformed protobuf")

// Tag is the byte before the value of a length-delimited field with a number below 16.
func Tag(field int) byte { return byte(field<<3 | Bytes) }

// Field reads the field at the beginning of a message: its number, its wire type, and where its
// value starts and ends; the length of a length-delimited value is not part of it. End is 0 if the
// bytes are malformed.
func Field(b []byte) (number, wire, start, end int) {
	tag, n := uvarint(b)
	if n <= 0 || tag>>3 == 0 || tag>>3 > MaxField {
		return 0, 0, 0, 0
	}
	size := 0
	switch tag & 7 {
	case Varint:
		if _, size = uvarint(b[n:]); size <= 0 {
			return 0, 0, 0, 0
		}
	case Fixed64:
		size = 8
	case Fixed32:
		size = 4
	case Bytes:
		length, head := uvarint(b[n:])
		if head <= 0 || length > uint64(len(b)) {
			return 0, 0, 0, 0
		}
		n, size = n+head, int(length)
	default:
		return 0, 0, 0, 0
	}
	if n+size > len(b) {
		return 0, 0, 0, 0
	}
	return int(tag >> 3), int(tag & 7), n, n + size
}

// EachField calls do for each length-delimited field of a message in memory, and skips the others.
// Fields up to the number known must be length-delimited.
func EachField(data []byte, known int, do func(field int, value []byte) error) error {
	for len(data) > 0 {
		field, wire, start, end := Field(data)
		if end == 0 || field <= known && wire != Bytes {
			return ErrProtobuf
		}
		if wire == Bytes {
			if err := do(field, data[start:end]); err != nil {
				return err
			}
		}
		data = data[end:]
	}
	return nil
}

func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
}
