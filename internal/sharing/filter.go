package sharing

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
)

// filter knows which keys were met lately. A place that finds few of its values lets the memo have
// a value only when it comes a second time: what never repeats is then never kept. A key that is
// forgotten too early, or is taken for another, costs a copy or an entry.
type filter struct {
	table atomic.Pointer[[]atomic.Uint32]
}

const (
	minFilter  = 1 << 11 // keys, of 4 bytes
	maxFilter  = 1 << 15
	filterPart = 1 << 10 // bytes of the collection for one key
)

// grow fits the filter to a collection of that many bytes. Calls must not overlap.
func (f *filter) grow(size int) {
	table, n := f.table.Load(), minFilter
	for n < maxFilter && n < size/filterPart {
		n *= 2
	}
	if table == nil || len(*table) < n {
		made := make([]atomic.Uint32, n)
		f.table.Store(&made)
	}
}

// again reports whether the key was met before in this field, and notes it.
func (f *filter) again(s *site, k key) bool {
	table := *f.table.Load()
	high, low := bits.Mul64(binary.LittleEndian.Uint64(k[:])^s.number, 0x9e3779b97f4a7c15)
	high, low = bits.Mul64(high^low^binary.LittleEndian.Uint64(k[8:]), 0xbf58476d1ce4e5b9)
	at, mark := &table[high%uint64(len(table))], uint32(low)|1
	return at.Swap(mark) == mark
}
