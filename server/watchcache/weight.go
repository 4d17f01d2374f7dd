package watchcache

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
)

// bareWeight is the bytes of a change and of an object without content.
const bareWeight = 1024

// weigh estimates the bytes of an old version of an object. bytes is the length of the version that
// replaces it, as its source knows it, or zero: an update rarely changes a length by much.
func weigh(obj any, bytes int) int64 {
	if bytes > 0 {
		return bareWeight + int64(bytes)
	}
	return bareWeight + length(obj)
}

// length is that of an object on the wire, about.
func length(obj any) int64 {
	switch obj := obj.(type) {
	case runtime.Unstructured:
		return lengthOf(obj.UnstructuredContent())
	case interface{ Size() int }:
		return int64(obj.Size())
	}
	document, _ := json.Marshal(obj) // an object without JSON has no length
	return int64(len(document))
}

// lengthOf is about the length of a part of a document.
func lengthOf(part any) (length int64) {
	switch part := part.(type) {
	case string:
		return int64(len(part)) + 3
	case map[string]any:
		for key, value := range part {
			length += int64(len(key)) + 4 + lengthOf(value)
		}
	case []any:
		for _, value := range part {
			length += 1 + lengthOf(value)
		}
	}
	return length + 2
}
