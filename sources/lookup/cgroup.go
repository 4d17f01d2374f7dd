package lookup

import (
	"encoding/hex"
	"strings"
)

// cgroup is a UID as it stands in the names of cgroups: of 32 hexadecimal digits. That of a static
// pod has no dashes, and the systemd driver writes underscores for them.
type cgroup [16]byte

// lastCgroup finds the last UID in a path, after the word pod, and the path above it.
func lastCgroup(path string) (group cgroup, above string, ok bool) {
	for at := strings.LastIndex(path, "pod"); at >= 0; at = strings.LastIndex(path[:at], "pod") {
		name := path[at+len("pod"):]
		if end := strings.IndexAny(name, "/."); end >= 0 {
			name = name[:end]
		}
		if group, ok = cgroupOfUID(name); ok {
			return group, path[:at], true
		}
	}
	return group, "", false
}

func cgroupOfUID(uid string) (group cgroup, ok bool) {
	var digits [2 * len(group)]byte
	n := 0
	for i := range len(uid) {
		switch c := uid[i]; {
		case c == '-' || c == '_':
			continue
		case n == len(digits):
			return group, false
		default:
			digits[n] = c
			n++
		}
	}
	_, err := hex.Decode(group[:], digits[:])
	return group, err == nil && n == len(digits)
}
