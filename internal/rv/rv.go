// Package rv recognises resource versions that no server can have reached.
package rv

const (
	leapDigits = 12 // from a hundred thousand million on
	leapGrowth = 2  // and at least ten times the version before
)

// Leaps reports whether to is so far ahead of from that no server can have made the writes between
// the two: it is a version from the future. etcd's own leap, the --bump-revision of a restore, is a
// thousand million and stays below the bound. Versions that are no decimal numbers, such as those
// of an aggregated API server, have no order, and do not leap.
func Leaps(from, to string) bool {
	return len(to) >= leapDigits && from != "" && len(to) >= len(from)+leapGrowth && decimal(from) && decimal(to)
}

func decimal(version string) bool {
	for i := range len(version) {
		if version[i] < '0' || version[i] > '9' {
			return false
		}
	}
	return true
}
