package store

import "strings"

// Version is a resource version: a moment in the history of one resource on one server. Versions of
// two resources, or of two servers, have no order: to compare them means nothing.
//
// Versions are compared if both are positive decimal numbers without leading zeros. Kubernetes
// promises such numbers since 1.35 (KEP-5504); aggregated API servers need not have them. The zero
// Version, and "0", name no moment and cannot be compared.
type Version string

// VersionOf is the version of an object.
func VersionOf(obj Entry) Version { return Version(obj.GetResourceVersion()) }

// Compare orders two versions: order is negative if v is older, zero if they are equal, and
// positive if v is newer. If they cannot be compared, comparable is false, and order is zero.
func (v Version) Compare(other Version) (order int, comparable bool) {
	switch {
	case !v.ordered() || !other.ordered():
		return 0, false
	case len(v) != len(other):
		return len(v) - len(other), true
	}
	return strings.Compare(string(v), string(other)), true
}

// Before reports whether v is certainly older than other.
func (v Version) Before(other Version) bool {
	order, _ := v.Compare(other)
	return order < 0
}

// Reaches reports whether a state at v certainly has all changes up to other: v is other or newer,
// or other is the zero Version.
func (v Version) Reaches(other Version) bool {
	order, comparable := v.Compare(other)
	return v == other || other == "" || comparable && order >= 0
}

func (v Version) ordered() bool {
	if v == "" || v[0] == '0' {
		return false
	}
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return false
		}
	}
	return true
}
