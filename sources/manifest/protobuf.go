package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protobufMagic is the prefix of each protobuf object of the API server.
var protobufMagic = []byte("k8s\x00")

var errProtobuf = errors.New("not a valid protobuf message")

// The wire formats of fields. Groups, the two others, are of a time before Kubernetes.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
	itemsField  = 2 // PodList.items
)

func isProtobuf(data []byte) bool {
	return bytes.HasPrefix(data, protobufMagic)
}

// openProtobuf takes an object out of its envelope.
func openProtobuf(data []byte) (schema.GroupVersionKind, []byte, error) {
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(data[len(protobufMagic):]); err != nil {
		return schema.GroupVersionKind{}, nil, errProtobuf
	}
	return schema.FromAPIVersionAndKind(envelope.APIVersion, envelope.Kind), envelope.Raw, nil
}

func (l limits) decodeProtobufPod(message []byte) (*corev1.Pod, error) {
	if l.object > 0 && (len(message) > maxMessage || messageWeight(message, maxDepth) > 2*l.object) {
		return nil, ErrTooLarge
	}
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(message); err != nil {
		return nil, errProtobuf
	}
	return pod, nil
}

const (
	// maxMessage is what an API server takes of one object.
	maxMessage = 3 << 20
	// maxDepth is how deep lists of structs are nested in a pod: spec.affinity.nodeAffinity, its
	// terms, their expressions.
	maxDepth = 6
)

// messageWeight counts the fields of a message that may be messages, down to a depth. Text looks
// like a message until its bytes prove otherwise, so text is counted as well.
func messageWeight(message []byte, depth int) (n int) {
	for len(message) > 0 {
		key, size := binary.Uvarint(message)
		if size <= 0 {
			return n
		}
		length, start, err := fieldSize(key&7, message[size:], size)
		if err != nil {
			return n
		}
		if key&7 == wireBytes {
			n++
			if depth > 0 {
				n += messageWeight(message[start:start+length], depth-1)
			}
		}
		message = message[start+length:]
	}
	return n
}

// protobufItems finds the items of a PodList without decoding them.
func protobufItems(message []byte) ([][]byte, error) {
	var items [][]byte
	for len(message) > 0 {
		key, n := binary.Uvarint(message)
		if n <= 0 {
			return nil, errProtobuf
		}
		size, n, err := fieldSize(key&7, message[n:], n)
		if err != nil {
			return nil, err
		}
		if key == itemsField<<3|wireBytes {
			items = append(items, message[n:n+size])
		}
		if len(items) > maxPods {
			return nil, ErrTooLarge
		}
		message = message[n+size:]
	}
	return items, nil
}

// fieldSize is the size of a field's value, and its offset if so many bytes come before rest.
func fieldSize(format uint64, rest []byte, before int) (size, start int, err error) {
	switch format {
	case wireVarint:
		_, size = binary.Uvarint(rest)
		if size <= 0 {
			return 0, 0, errProtobuf
		}
	case wireFixed32:
		size = 4
	case wireFixed64:
		size = 8
	case wireBytes:
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)) {
			return 0, 0, errProtobuf
		}
		size, before, rest = int(length), before+n, rest[n:]
	default:
		return 0, 0, errProtobuf
	}
	if size > len(rest) {
		return 0, 0, errProtobuf
	}
	return size, before, nil
}
