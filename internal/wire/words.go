package wire

import (
	"encoding/binary"
	"math/bits"
)

// Text is read eight bytes at a time: the strings of an object are short, so that a loop over
// single bytes mispredicts a branch at the end of each. A word has its first byte lowest.

const (
	wordSize = 8
	ones     = 0x0101010101010101
	highs    = ones << 7
	lower    = ones * ('{' ^ '[') // makes [ and ] equal to { and }, and no other byte
)

func word(data []byte, i int) uint64 { return binary.LittleEndian.Uint64(data[i:]) }

// equals has the high bit of each byte that is c.
func equals(x uint64, c byte) uint64 {
	x ^= ones * uint64(c)
	return ^(x&^highs + ^uint64(highs) | x) & highs
}

// first is the lowest byte that is c, as a bit of that byte; higher bits mean nothing. It is
// zero if no byte is c.
func first(x uint64, c byte) uint64 {
	x ^= ones * uint64(c)
	return (x - ones) &^ x & highs
}

// index is the number of the byte that has the lowest bit.
func index(mask uint64) int { return bits.TrailingZeros64(mask) / wordSize }

// quoted has the low bit of each byte that is inside a string, if the word has no backslash. The
// quote that begins a string is inside, the one that ends it is not. last is the result for the
// word before.
func quoted(x, last uint64) uint64 {
	before := last >> (64 - wordSize) * ones
	return (equals(x, '"')>>7*ones ^ before) & ones
}

// plain reports whether all bytes are printable ASCII and none is a backslash.
func plain(x uint64) bool {
	return ((x-ones*' ')&^x|(x+ones|x)|first(x, '\\'))&highs == 0
}
