package watchcache

import (
	"encoding/json"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tributary-go/tributary/store"
)

// bareWeight is the bytes of a change and of an object without content.
const bareWeight = 1024

// lengths are those of objects whose writer does not tell them. To measure one walks all of it,
// which took half the time of a write.
type lengths[T store.Object] struct{ known map[objectKey]int64 }

const (
	// measuredEvery is about how many writes of an object one measurement stands for: an update
	// rarely changes a length by much.
	measuredEvery = 16
	// alwaysMeasured is the length from which on an object is measured at each write: few such
	// objects fill a window.
	alwaysMeasured = 32 << 10
)

// of is the length of an old version of an object on the wire, about. bytes is that of the version
// that replaces it, as its source knows it, or zero. gone says that none replaces it.
func (l *lengths[T]) of(obj T, bytes int, gone bool) (length int64) {
	key, known := keyOf(obj), false
	if gone {
		defer delete(l.known, key)
	}
	if bytes > 0 {
		return int64(bytes)
	}
	if length, known = l.known[key]; known && length < alwaysMeasured && rand.Uint32()%measuredEvery != 0 {
		return length
	}
	if l.known == nil {
		l.known = map[objectKey]int64{}
	}
	l.known[key] = lengthOf(obj)
	return l.known[key]
}

func (l *lengths[T]) forgetAll() { l.known = nil }

// lengthOf measures an object.
func lengthOf(obj any) int64 {
	switch obj := obj.(type) {
	case runtime.Unstructured:
		return lengthOfPart(obj.UnstructuredContent())
	case interface{ Size() int }:
		return int64(obj.Size())
	}
	document, _ := json.Marshal(obj) // an object without JSON has no length
	return int64(len(document))
}

// lengthOfPart is about the length of a part of a document.
func lengthOfPart(part any) (length int64) {
	switch part := part.(type) {
	case string:
		return int64(len(part)) + 3
	case map[string]any:
		for key, value := range part {
			length += int64(len(key)) + 4 + lengthOfPart(value)
		}
	case []any:
		for _, value := range part {
			length += 1 + lengthOfPart(value)
		}
	}
	return length + 2
}
