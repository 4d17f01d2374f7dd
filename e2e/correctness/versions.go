package correctness

import (
	"slices"
	"strconv"
	"sync"
)

// Versions numbers the versions of a server's writes, from 1 on, without the gaps that writes of
// other objects leave.
type Versions struct {
	mu    sync.Mutex
	known []uint64            // ascending; the first is that of the empty collection
	keys  map[string][]uint64 // the writes of each key
}

// NewVersions begins at the version of an empty collection.
func NewVersions(base uint64) *Versions {
	return &Versions{known: []uint64{base}, keys: map[string][]uint64{}}
}

// Add notes the version of a write.
func (v *Versions) Add(version uint64, key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known = insert(v.known, version)
	v.keys[key] = insert(v.keys[key], version)
}

func insert(all []uint64, version uint64) []uint64 {
	if i, found := slices.BinarySearch(all, version); !found {
		return slices.Insert(all, i, version)
	}
	return all
}

// upTo counts the versions at or before one.
func upTo(all []uint64, version uint64) int {
	i, found := slices.BinarySearch(all, version)
	if found {
		i++
	}
	return i
}

// ofKey is the number of the last write of a key at or before a version.
func (v *Versions) ofKey(key, version string) string {
	n, _ := strconv.ParseUint(version, 10, 64)
	v.mu.Lock()
	writes := v.keys[key]
	if i := upTo(writes, n); i > 0 {
		n = writes[i-1]
	}
	v.mu.Unlock()
	return strconv.FormatUint(v.Virtual(n), 10)
}

// Latest is the number of the last write.
func (v *Versions) Latest() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return uint64(len(v.known))
}

// Virtual is the number of the last write at or before a version.
func (v *Versions) Virtual(version uint64) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return uint64(upTo(v.known, version))
}

// Real returns the server's version of the write with this number. For a write that is still to
// come it counts on from the last version, because nobody else writes to the server.
func (v *Versions) Real(number uint64) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := uint64(len(v.known)); number > n {
		return v.known[n-1] + number - n
	}
	return v.known[max(number, 1)-1]
}

func (v *Versions) virtual(version string) string {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil || n == 0 {
		return version
	}
	return strconv.FormatUint(v.Virtual(n), 10)
}

// virtualExact is the number of a write, and none for a version that no write has.
func (v *Versions) virtualExact(version string) string {
	n, _ := strconv.ParseUint(version, 10, 64)
	v.mu.Lock()
	_, found := slices.BinarySearch(v.known, n)
	v.mu.Unlock()
	if !found {
		return ""
	}
	return v.virtual(version)
}
