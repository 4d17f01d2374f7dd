package delta

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// code is a Huffman code of bytes, with words of up to codeBits bits. Each byte has a word. A word
// is written from its low bit on, so that the reader looks the next codeBits bits up in one step.
type code struct {
	words [256]uint16
	sizes [256]uint8
	table [1 << codeBits]entry
}

const codeBits = 11

type entry struct{ symbol, size uint8 }

func newCode(samples []byte) *code {
	var counts [256]int
	for b := range counts {
		counts[b] = 1
	}
	for _, b := range samples {
		counts[b] += 8 // a byte that no sample has is rarer than one that is in a sample once
	}
	c := &code{sizes: codeSizes(counts)}
	for slices.Max(c.sizes[:]) > codeBits {
		for b := range counts { // flatter counts make shorter words of rare bytes
			counts[b] = (counts[b] + 1) / 2
		}
		c.sizes = codeSizes(counts)
	}
	c.assign()
	return c
}

// codeSizes is Huffman's algorithm: the two rarest groups become one, until one is left, and each
// byte of the two gets a longer word.
func codeSizes(counts [256]int) (sizes [256]uint8) {
	type group struct {
		count int
		bytes []byte
	}
	groups := make([]group, len(counts))
	for b := range counts {
		groups[b] = group{counts[b], []byte{byte(b)}}
	}
	descending := func(g group, count int) int { return cmp.Compare(count, g.count) }
	slices.SortStableFunc(groups, func(a, b group) int { return descending(a, b.count) })
	for last := len(groups) - 1; last > 0; last-- {
		joined := group{groups[last].count + groups[last-1].count, slices.Concat(groups[last].bytes, groups[last-1].bytes)}
		for _, b := range joined.bytes {
			sizes[b]++
		}
		at, _ := slices.BinarySearchFunc(groups[:last-1], joined.count, descending)
		groups = slices.Insert(groups[:last-1], at, joined)
	}
	return sizes
}

// assign gives the bytes words of their sizes, in canonical order.
func (c *code) assign() {
	next := 0
	for size := uint8(1); size <= codeBits; size++ {
		next <<= 1
		for b := range c.sizes {
			if c.sizes[b] != size {
				continue
			}
			word := bits.Reverse16(uint16(next)) >> (16 - size)
			c.words[b] = word
			for at := int(word); at < len(c.table); at += 1 << size {
				c.table[at] = entry{byte(b), size}
			}
			next++
		}
	}
}

// length is the number of bytes that append appends.
func (c *code) length(data []byte) int {
	n := 0
	for _, b := range data {
		n += int(c.sizes[b])
	}
	return (n + 7) / 8
}

func (c *code) append(dst, data []byte) []byte {
	var pending uint64
	var count uint8
	for _, b := range data {
		pending |= uint64(c.words[b]) << count
		if count += c.sizes[b]; count >= 32 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(pending))
			pending, count = pending>>32, count-32
		}
	}
	for rest := int(count); rest > 0; rest -= 8 {
		dst = append(dst, byte(pending))
		pending >>= 8
	}
	return dst
}

// decode appends count bytes to dst. Data has no bits left over but those of its last byte.
func (c *code) decode(dst, data []byte, count int) ([]byte, error) {
	dst = slices.Grow(dst, count)
	var pending uint64
	var have uint8
	for range count {
		if have < codeBits {
			for ; have <= 48 && len(data) >= 2; have += 16 {
				pending |= uint64(binary.LittleEndian.Uint16(data)) << have
				data = data[2:]
			}
			if have < codeBits && len(data) == 1 {
				pending |= uint64(data[0]) << have
				have, data = have+8, nil
			}
		}
		e := c.table[pending&(1<<codeBits-1)]
		if e.size > have {
			return nil, ErrDamaged
		}
		dst = append(dst, e.symbol)
		pending, have = pending>>e.size, have-e.size
	}
	if len(data) > 0 || have > 7 || pending != 0 {
		return nil, ErrDamaged
	}
	return dst, nil
}
