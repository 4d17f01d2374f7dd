package delta

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// MaxDocument is the longest document in bytes. Pack leaves longer ones to its caller.
const MaxDocument = 64 << 20

// Generation has the root and the codes that were learned from a few documents.
type Generation struct {
	root  Base
	raw   []byte // the root's document
	table *table // nil if the generation is small
	codes *codes // nil if the generation is small, or if its samples left too few literals
	coder *Coder // nil unless CodeAlone
	alone Base   // of documents that the coder codes
}

// Base is a document from which others are copied.
type Base struct {
	of      *Generation // nil of a tail
	payload []byte      // against the root; nil for the root itself
}

// Tail is the base of a payload that is the beginning of a document: it has the rest, as a copy. It
// belongs to no generation, and is no base for Pack.
func Tail(rest []byte) *Base { return &Base{payload: bytes.Clone(rest)} }

// IsTail reports whether [Tail] has made the base.
func (b *Base) IsTail() bool { return b.of == nil }

// Generation is the one to which the base belongs; nil of a tail.
func (b *Base) Generation() *Generation { return b.of }

// Len is the bytes that the base takes for itself.
func (b *Base) Len() int {
	if b.isRoot() {
		return len(b.of.raw)
	}
	return len(b.payload)
}

func (b *Base) isRoot() bool { return b == &b.of.root }

// Root is the base of the first document of a generation, and of each one without known siblings.
func (g *Generation) Root() *Base { return &g.root }

// Small makes a generation for few documents: they are kept against first, which is copied.
func Small(first []byte) *Generation {
	g := &Generation{raw: bytes.Clone(first)}
	g.root.of = g
	return g
}

// Learn makes a generation of samples, at least one, for many documents.
func Learn(samples ...[]byte) *Generation {
	g := Small(samples[0])
	g.table = &table{}
	g.table.fill(g.raw)
	var seen script
	var near table
	var of counts
	literals := 0
	for i := 1; i < len(samples); i++ {
		near.fill(samples[i-1])
		seen.reset()
		seen.add(samples[i], samples[i-1], &near)
		literals += len(seen.literals)
		of.add(seen.spell(samples[i]))
	}
	if literals >= minLiterals {
		g.codes = newCodes(&of)
	}
	return g
}

// minLiterals is the number of sample bytes below which a code would be a guess.
const minLiterals = 1 << 10

// A new base pays if a document takes more than nearShare of the last base, which takes baseCost
// beside its payload: then the two are no siblings. A document that takes more than likeShare of
// itself is unlike all. It is coded, unless it takes more than codedShare even so.
const (
	nearShare  = 0.7
	baseCost   = 48
	likeShare  = 0.75
	codedShare = 0.9
)

// Packer makes payloads. The zero value is ready, and keeps its buffers and the last base's table.
type Packer struct {
	unpacker Unpacker
	script   script
	near     *Base // of table
	table    table
}

// Pack appends the payload of document to dst. near is the base of a likely sibling; of is the base
// of the payload. It is near, a new base, the root, or nil: then the payload is the document
// itself.
func (p *Packer) Pack(dst, document []byte, near *Base) (payload []byte, of *Base) {
	g := near.of
	if len(document) > MaxDocument {
		return append(dst, document...), nil
	}
	from, err := p.unpacker.base(near)
	if err != nil {
		return append(dst, document...), nil
	}
	p.diff(document, from, near)
	if g.table != nil && !near.isRoot() {
		if float64(p.script.size()) <= nearShare*float64(len(near.payload)+baseCost) {
			return p.script.append(dst, document, g.codes), near
		}
		p.diff(document, g.raw, &g.root)
	}
	if float64(p.script.size()) > likeShare*float64(len(document)) {
		if g.codes != nil {
			packed := p.script.append(dst, document, g.codes)
			if float64(len(packed)-len(dst)) <= codedShare*float64(len(document)) {
				return packed, &g.root
			}
		}
		return append(dst, document...), nil
	}
	if g.table == nil { // a small generation has no other base
		return p.script.append(dst, document, nil), near
	}
	// A base is read for each of its documents: it stays plain.
	own := make([]byte, 0, p.script.size()+2*binary.MaxVarintLen32)
	return dst, &Base{of: g, payload: p.script.append(own, document, nil)}
}

// diff makes the script from a base to a document. from is the document of the base.
func (p *Packer) diff(document, from []byte, of *Base) {
	t := of.of.table
	if t == nil || !of.isRoot() {
		if p.near != of {
			p.table.fill(from)
			p.near = of
		}
		t = &p.table
	}
	p.script.reset()
	p.script.add(document, from, t)
}

// table finds eight bytes of a base: 1 + their position, by hash.
type table [1 << tableBits]uint32

// 8,192 places find no more in a pod of 8 KB, and take 4 us longer to fill.
const tableBits = 11

func place(word uint64) uint64 { return word * 0x9e3779b97f4a7c15 >> (64 - tableBits) }

func (t *table) fill(document []byte) {
	clear(t[:])
	step := 4
	if len(document) > 4<<10 {
		step = 8
	}
	for i := 0; i+8 <= len(document); i += step {
		t[place(binary.LittleEndian.Uint64(document[i:]))] = uint32(i) + 1
	}
}

// script makes a document of a base. A step of ops is the number of literals, the number of bytes
// to copy, and how far the copy's place moves against that of the last one. The last step may have
// literals alone.
type script struct {
	ops, literals []byte
	symbols       []symbol // of spell
}

func (s *script) reset() { s.ops, s.literals = s.ops[:0], s.literals[:0] }

func (s *script) size() int { return len(s.ops) + len(s.literals) }

// add appends the script from one document to another. It looks for the next copy where the last
// one would go on, and then in the table.
func (s *script) add(document, from []byte, t *table) {
	literal, shift := 0, 0
	for at := 0; at+8 <= len(document); {
		source := find(document, from, at, at+shift, t)
		if source < 0 {
			at++
			continue
		}
		begin, end := at, at+8+common(document[at+8:], from[source+8:])
		for begin > literal && source > 0 && document[begin-1] == from[source-1] {
			begin, source = begin-1, source-1
		}
		s.ops = binary.AppendUvarint(s.ops, uint64(begin-literal))
		s.ops = binary.AppendUvarint(s.ops, uint64(end-begin))
		s.ops = binary.AppendVarint(s.ops, int64(source-begin-shift))
		s.literals = append(s.literals, document[literal:begin]...)
		shift, literal, at = source-begin, end, end
	}
	if literal < len(document) {
		s.ops = binary.AppendUvarint(s.ops, uint64(len(document)-literal))
		s.literals = append(s.literals, document[literal:]...)
	}
}

// find returns where from has the eight bytes of document at at, or -1.
func find(document, from []byte, at, likely int, t *table) int {
	word := binary.LittleEndian.Uint64(document[at:])
	if likely >= 0 && likely+8 <= len(from) && binary.LittleEndian.Uint64(from[likely:]) == word {
		return likely
	}
	source := int(t[place(word)]) - 1
	if source < 0 || binary.LittleEndian.Uint64(from[source:]) != word {
		return -1
	}
	return source
}

// common is the number of bytes in which a and b begin alike.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if differ := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); differ != 0 {
			return i + bits.TrailingZeros64(differ)>>3
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// append appends the payload: the length of the document, doubled and odd if the rest is coded;
// then the words of the steps, or the length of ops, ops and literals.
func (s *script) append(dst, document []byte, c *codes) []byte {
	begin := len(dst)
	if c != nil {
		dst = binary.AppendUvarint(dst, uint64(len(document))<<1|1)
		dst = c.append(dst, s.spell(document))
		if len(dst)-begin <= s.size()+2 {
			return dst
		}
		dst = dst[:begin]
	}
	dst = binary.AppendUvarint(dst, uint64(len(document))<<1)
	dst = binary.AppendUvarint(dst, uint64(len(s.ops)))
	return append(append(dst, s.ops...), s.literals...)
}

// spell returns the steps of the script of a document, byte by byte: the numbers of each, and its
// literals. The last step copies nothing if it has literals alone.
func (s *script) spell(document []byte) []symbol {
	const missing = 2 // numbers of the last step
	symbols := slices.Grow(s.symbols[:0], len(s.ops)+len(s.literals)+missing)
	at, before := 0, byte(0)
	for ops := s.ops; len(ops) > 0; {
		var numbers [3]int // the last one has its sign in its lowest bit
		for i := range numbers {
			context := counted + symbol(i)
			for shift := 0; ; shift += 7 {
				b := byte(0)
				if len(ops) > 0 {
					b, ops = ops[0], ops[1:]
				}
				symbols = append(symbols, context<<8|symbol(b))
				numbers[i] |= int(b&0x7f) << shift
				if b < 0x80 {
					break
				}
				context = further
			}
		}
		for _, b := range document[at : at+numbers[0]] {
			symbols = append(symbols, symbol(contextAfter[before])<<8|symbol(b))
			before = b
		}
		if at += numbers[0] + numbers[1]; numbers[1] > 0 {
			before = document[at-1]
		}
	}
	s.symbols = symbols
	return symbols
}
