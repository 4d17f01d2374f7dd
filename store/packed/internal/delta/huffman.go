package delta

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// codes are the Huffman codes of a generation, one for each context of a byte. The text of an
// address and the numbers of a step have little in common.
type codes struct {
	tables [contexts][1 << codeBits]entry
	words  [contexts << 8]uint32 // a word, and its length above wordBits
}

// A byte of a step has the context of its number, or is further. A literal has that of the byte
// before it in the document: others, hexadecimal, lower or visible.
const (
	others = iota
	hexadecimal
	lower
	visible
	counted
	copied
	moved
	further
	contexts
)

// contextAfter is the context of a literal after each byte.
var contextAfter = func() (after [256]uint8) {
	for b := range after {
		switch {
		case b >= '0' && b <= '9', b >= 'a' && b <= 'f':
			after[b] = hexadecimal
		case b > 'f' && b <= 'z':
			after[b] = lower
		case b >= ' ' && b < 0x7f:
			after[b] = visible
		}
	}
	return after
}()

// A byte that no sample has in its context is written as the escape's word, and then itself. So the
// words of others are no longer for its sake.
const (
	codeBits = 9
	wordBits = 24
	maxWord  = codeBits + 8
	escape   = 256
)

// entry is a byte, and how to go on: the length of its word, whether that is the escape, and the
// context of a literal after it.
type entry struct{ symbol, info uint8 }

const (
	escaped = 1 << 4
	nextAt  = 6
)

// counts are how often samples have each byte in each context.
type counts [contexts][escape + 1]int

func (c *counts) add(symbols []symbol) {
	for _, s := range symbols {
		c[s>>8][s&0xff]++
	}
}

// symbol is a byte and, above it, its context.
type symbol uint16

func newCodes(of *counts) *codes {
	c := &codes{}
	for context := range contexts {
		counts := of[context]
		counts[0] = max(1, counts[0]) // no code has the escape alone
		once := 1
		for _, n := range counts {
			if n == 1 {
				once++
			}
		}
		counts[escape] = once
		sizes := codeSizes(counts)
		for slices.Max(sizes[:]) > codeBits {
			for b, n := range counts { // flatter counts make shorter words of rare bytes
				counts[b] = (n + 1) / 2
			}
			sizes = codeSizes(counts)
		}
		c.assign(context, sizes)
	}
	return c
}

// codeSizes is Huffman's algorithm: the two rarest groups become one, until one is left, and each
// byte of the two gets a longer word. A byte without a count gets none.
func codeSizes(counts [escape + 1]int) (sizes [escape + 1]uint8) {
	type group struct {
		count   int
		symbols []int
	}
	var groups []group
	for s, n := range counts {
		if n > 0 {
			groups = append(groups, group{n, []int{s}})
		}
	}
	descending := func(g group, count int) int { return cmp.Compare(count, g.count) }
	slices.SortStableFunc(groups, func(a, b group) int { return descending(a, b.count) })
	for last := len(groups) - 1; last > 0; last-- {
		joined := group{groups[last].count + groups[last-1].count, slices.Concat(groups[last].symbols, groups[last-1].symbols)}
		for _, s := range joined.symbols {
			sizes[s]++
		}
		at, _ := slices.BinarySearchFunc(groups[:last-1], joined.count, descending)
		groups = slices.Insert(groups[:last-1], at, joined)
	}
	return sizes
}

// assign gives the bytes of a context words of their sizes, in canonical order. A word is written
// from its low bit on, so that the reader looks the next codeBits bits up in one step.
func (c *codes) assign(context int, sizes [escape + 1]uint8) {
	table, words := &c.tables[context], c.words[context<<8:][:256]
	next := 0
	var out uint32 // the escape's word
	for size := uint8(1); size <= codeBits; size++ {
		next <<= 1
		for s, of := range sizes {
			if of != size {
				continue
			}
			word := bits.Reverse16(uint16(next)) >> (16 - size)
			e := entry{byte(s), size}
			if s == escape {
				e.info |= escaped
				out = uint32(word)
			} else {
				e.info |= contextAfter[s] << nextAt
				words[s] = uint32(word) | uint32(size)<<wordBits
			}
			for at := int(word); at < len(table); at += 1 << size {
				table[at] = e
			}
			next++
		}
	}
	for s := range words {
		if words[s] == 0 {
			size := sizes[escape]
			words[s] = out | uint32(s)<<size | uint32(size+8)<<wordBits
		}
	}
}

// append appends the words of symbols.
func (c *codes) append(dst []byte, symbols []symbol) []byte {
	var pending uint64
	var have uint8
	for _, s := range symbols {
		word := c.words[s]
		pending |= uint64(word&(1<<wordBits-1)) << (have & 63)
		if have += uint8(word >> wordBits); have >= 32 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(pending))
			pending, have = pending>>32, have-32
		}
	}
	for rest := int(have); rest > 0; rest -= 8 {
		dst = append(dst, byte(pending))
		pending >>= 8
	}
	return dst
}

// coded is a stream of words. It goes on with zeros after its end, and then has less than no bits.
type coded struct {
	data    []byte
	pending uint64
	have    int
}

// fill makes sure that the bits of a word are pending. Those above have are right, too.
func (r *coded) fill() {
	if len(r.data) >= 8 {
		r.pending |= binary.LittleEndian.Uint64(r.data) << (r.have & 63)
		r.data = r.data[(63-r.have)>>3:]
		r.have |= 56
		return
	}
	for ; len(r.data) > 0 && r.have <= 56; r.have += 8 {
		r.pending |= uint64(r.data[0]) << (r.have & 63)
		r.data = r.data[1:]
	}
}

// step reads the numbers of a step.
func (c *codes) step(r *coded) (numbers [3]uint64) {
	pending, have := r.pending, r.have
	for i := range numbers {
		context, more := counted+i, true
		for shift := 0; more && shift < 35; shift += 7 {
			if have < maxWord {
				r.pending, r.have = pending, have
				r.fill()
				pending, have = r.pending, r.have
			}
			e := c.tables[context&(contexts-1)][pending&(1<<codeBits-1)]
			if e.info&escaped != 0 {
				e.symbol = byte(pending >> (e.info % escaped))
				e.info = e.info - escaped + 8
			}
			pending >>= e.info & 63
			have -= int(e.info & 63)
			numbers[i] |= uint64(e.symbol&0x7f) << shift
			context, more = further, e.symbol >= 0x80
		}
	}
	r.pending, r.have = pending, have
	return numbers
}

// literals fills dst, which comes after the byte before in the document.
func (c *codes) literals(r *coded, dst []byte, before byte) {
	context, pending, have := contextAfter[before], r.pending, r.have
	for i := range dst {
		if have < maxWord {
			r.pending, r.have = pending, have
			r.fill()
			pending, have = r.pending, r.have
		}
		e := c.tables[context&(contexts-1)][pending&(1<<codeBits-1)]
		if e.info&escaped != 0 {
			e.symbol = byte(pending >> (e.info % escaped))
			e.info = e.info - escaped + 8
			e.info |= contextAfter[e.symbol] << nextAt
		}
		pending >>= e.info & 63
		have -= int(e.info & 63)
		dst[i], context = e.symbol, e.info>>nextAt
	}
	r.pending, r.have = pending, have
}
