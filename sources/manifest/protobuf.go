package manifest

import (
	"bytes"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/internal/wire"
)

// protobufMagic is the prefix of each protobuf object of the API server.
var protobufMagic = []byte(wire.Magic)

var errProtobuf = errors.New("not a valid protobuf message")

const itemsField = 2 // PodList.items

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
	// maxMessage is the largest object that an API server takes.
	maxMessage = 3 << 20
	// maxDepth is how deep lists of structs are nested in a pod: spec.affinity.nodeAffinity, its
	// terms, their expressions.
	maxDepth = 6
)

// messageWeight counts the fields of a message that may be messages, down to a depth. Text looks
// like a message until its bytes prove otherwise, so text is counted as well.
func messageWeight(message []byte, depth int) (n int) {
	for len(message) > 0 {
		_, format, start, end := wire.Field(message)
		if end == 0 {
			return n
		}
		if format == wire.Bytes {
			n++
			if depth > 0 {
				n += messageWeight(message[start:end], depth-1)
			}
		}
		message = message[end:]
	}
	return n
}

// protobufItems finds the items of a PodList without decoding them.
func protobufItems(message []byte) ([][]byte, error) {
	var items [][]byte
	for len(message) > 0 {
		number, format, start, end := wire.Field(message)
		if end == 0 {
			return nil, errProtobuf
		}
		if number == itemsField && format == wire.Bytes {
			items = append(items, message[start:end])
		}
		if len(items) > maxPods {
			return nil, ErrTooLarge
		}
		message = message[end:]
	}
	return items, nil
}
