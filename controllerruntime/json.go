package controllerruntime

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
)

// copyDocument is runtime.DeepCopyJSON for an object, in about four fifths of the time. A map is
// cloned as it lies in memory, and then only its maps and slices are replaced by copies. So the
// keys of scalars are not hashed again.
//
// A clone is as large as its original. The decoder made the metadata map large enough for
// managedFields, even if it dropped them. So that map and the one around it are built anew.
func copyDocument(from map[string]any) map[string]any {
	var d documentCopier
	return rebuild(from, func(key string, value any) any {
		if metadata, ok := value.(map[string]any); ok && key == "metadata" {
			return rebuild(metadata, func(_ string, value any) any { return d.copied(value) })
		}
		return d.copied(value)
	})
}

// rebuild is a map of the right size with copies of the members.
func rebuild(from map[string]any, copied func(key string, value any) any) map[string]any {
	if from == nil {
		return nil
	}
	to := make(map[string]any, len(from))
	for key, value := range from {
		to[key] = copied(key, value)
	}
	return to
}

// documentCopier copies the parts of one document, its short slices in a few allocations.
type documentCopier struct{ spare []any }

// spareElements is the room that short slices share.
const spareElements = 8

func (d *documentCopier) copied(value any) any {
	switch value := value.(type) {
	case map[string]any:
		clone := maps.Clone(value)
		for key, member := range value {
			if !isScalar(member) {
				clone[key] = d.copied(member)
			}
		}
		return clone
	case []any:
		if value == nil {
			return value
		}
		clone := d.slice(len(value))
		for i, element := range value {
			clone[i] = d.copied(element)
		}
		return clone
	}
	if isScalar(value) {
		return value
	}
	return runtime.DeepCopyJSONValue(value) // a json.Number, or the panic for any other type
}

// slice makes a slice of n elements, not nil. Its capacity ends with it, so that a reader's append
// does not write into the next slice.
func (d *documentCopier) slice(n int) []any {
	if d.spare == nil || n > len(d.spare) {
		d.spare = make([]any, max(n, spareElements))
	}
	made := d.spare[:n:n]
	d.spare = d.spare[n:]
	return made
}

func isScalar(value any) bool {
	switch value.(type) {
	case string, int64, bool, float64, nil:
		return true
	}
	return false
}
