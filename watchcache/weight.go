package watchcache

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// scale weighs objects in bytes, by their length on the wire, which a reflector's source knows. To
// measure a pod costs more than all the rest of a write. So of pods without a known length only a
// random sample is measured, as of types that must be encoded for their length. Other objects weigh
// as the sample did lately, or as their own annotations, if those weigh more.
type scale[T store.Object] struct {
	sampled bool
	skip    int   // objects until the next one of the sample
	typical int64 // the weight that the sample had lately
}

const (
	// weighEvery is the mean number of objects per measured one.
	weighEvery = 64
	// bareWeight is what a change and an object without content take.
	bareWeight = 1024
	// largeBytes is the length from which shared annotations are worth to be looked at.
	largeBytes = 32 << 10
)

func newScale[T store.Object]() scale[T] {
	var none T
	switch any(none).(type) {
	case *corev1.Pod:
		return scale[T]{sampled: true}
	case interface{ Size() int }, runtime.Unstructured:
		return scale[T]{}
	}
	return scale[T]{sampled: true}
}

// weigh estimates the bytes of an object that next replaces; the zero next stands for a deletion.
// bytes is the length of next, or of the object that is deleted, as its source knows it, or zero.
// An update rarely changes a length by much. In a sampled type, annotations that next shares do not
// count: the window alone does not keep them. One goroutine at a time may weigh.
func (s *scale[T]) weigh(obj, next T, bytes int) int64 {
	switch {
	case bytes > 0:
		return s.known(obj, next, bareWeight+int64(bytes))
	case !s.sampled:
		return bareWeight + length(obj)
	}
	own := obj.GetAnnotations()
	shared := !pointer.None(next) && sameMap(own, next.GetAnnotations())
	if s.skip > 0 {
		s.skip--
		if shared { // not read either: they are rarely in the processor's cache
			return s.typical
		}
		return max(s.typical, bareWeight+annotated(own))
	}
	s.skip = rand.IntN(2*weighEvery - 1)
	weight := bareWeight + length(obj)
	if shared {
		weight -= annotated(own)
	}
	s.learn(weight)
	return max(s.typical, weight)
}

// known is a weight that the source has told.
func (s *scale[T]) known(obj, next T, weight int64) int64 {
	if weight > largeBytes && s.sampled && !pointer.None(next) {
		if own := obj.GetAnnotations(); sameMap(own, next.GetAnnotations()) {
			weight -= annotated(own)
		}
	}
	s.learn(weight)
	return weight
}

func (s *scale[T]) learn(weight int64) {
	if s.typical == 0 {
		s.typical = weight
	}
	s.typical += (weight - s.typical) / 8
}

// length is that of an object on the wire, about.
func length(obj any) int64 {
	switch obj := obj.(type) {
	case runtime.Unstructured:
		return lengthOf(obj.UnstructuredContent())
	case interface{ Size() int }:
		return int64(obj.Size())
	}
	document, _ := json.Marshal(obj) // what has no JSON has no length
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

// sameMap reports whether a and b are one map in memory.
func sameMap(a, b map[string]string) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

func annotated(annotations map[string]string) (length int64) {
	for key, value := range annotations {
		length += int64(len(key) + len(value))
	}
	return length
}
