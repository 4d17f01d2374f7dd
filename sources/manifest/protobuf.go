package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protobufMagic is what the API server puts before each object in protobuf.
var protobufMagic = []byte("k8s\x00")

var errProtobuf = errors.New("not a valid protobuf message")

// Two wire formats are all that an outline of a message needs.
const (
	wireVarint = 0
	wireBytes  = 2
	itemsField = 2 // PodList.items
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

func decodeProtobufPod(message []byte) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(message); err != nil {
		return nil, errProtobuf
	}
	return pod, nil
}

// protobufItems finds the items of a PodList without decoding them.
func protobufItems(message []byte) ([][]byte, error) {
	var items [][]byte
	for len(message) > 0 {
		key, n := binary.Uvarint(message)
		if n <= 0 {
			return nil, errProtobuf
		}
		message = message[n:]
		value, n := binary.Uvarint(message)
		if n <= 0 {
			return nil, errProtobuf
		}
		message = message[n:]
		switch key & 7 {
		case wireVarint:
		case wireBytes:
			if value > uint64(len(message)) {
				return nil, errProtobuf
			}
			if key>>3 == itemsField {
				items = append(items, message[:value])
			}
			message = message[value:]
		default: // no field of a list has another format
			return nil, errProtobuf
		}
	}
	return items, nil
}
