// Package rv orders resource versions where they can be ordered (KEP-5504).
package rv

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Later is the newer of two versions. It is came when the two cannot be compared, and held when
// came is empty.
func Later(held, came string) string {
	if came == "" {
		return held
	}
	if order, err := resourceversion.CompareResourceVersion(held, came); err == nil && order > 0 {
		return held
	}
	return came
}

const (
	leapDigits = 12 // from a hundred thousand million on
	leapGrowth = 2  // and at least ten times the version before
)

// Leaps reports whether to is so far ahead of from that no server can have made the writes between
// the two: it is a version from the future. Both are decimal numbers. etcd's own leap, the
// --bump-revision of a restore, is a thousand million and stays below the bound.
func Leaps(from, to string) bool {
	return len(to) >= leapDigits && from != "" && len(to) >= len(from)+leapGrowth
}
