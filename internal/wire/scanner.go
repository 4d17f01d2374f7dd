package wire

import "math/bits"

// JSONScanner finds the end of one JSON value that comes in pieces: it follows brackets and
// strings, and nothing else.
type JSONScanner struct {
	// Started reports whether the value has begun, and InScalar whether the end of the stream could
	// end it: it is a number, true, false or null outside all brackets.
	Started, InScalar bool

	// Read is the number of bytes that were read. Inner is the number at the end of the first
	// object or array that lies directly in the value; 0 if none has ended.
	Read, Inner int

	depth    int
	inString bool
	escaped  bool
}

// Feed takes the next bytes. It returns how many belong to the value, and whether it is complete.
func (s *JSONScanner) Feed(b []byte) (n int, done bool) {
	for n < len(b) && !done {
		if s.depth > 1 && !s.escaped {
			n = s.leap(b, n)
		}
		n, done = s.step(b, n, min(n+wordSize, len(b)))
	}
	s.Read += n
	return n, done
}

// leap passes over words that have no backslash, and that cannot end the value, or the first object
// in it. It returns the index of the first word that may.
func (s *JSONScanner) leap(b []byte, i int) int {
	var in uint64
	if s.inString {
		in = ones
	}
	depth := s.depth
	for ; i+wordSize <= len(b); i += wordSize {
		x := word(b, i)
		if first(x, '\\') != 0 {
			break
		}
		now := quoted(x, in)
		outside := (now ^ ones) << 7
		closing := bits.OnesCount64(equals(x|lower, '}') & outside)
		if depth-closing < 2 {
			break
		}
		depth += bits.OnesCount64(equals(x|lower, '{')&outside) - closing
		in = now
	}
	s.depth, s.inString = depth, in>>(64-wordSize) != 0
	return i
}

// step goes from b[i] to b[to] byte by byte, and stops at the value's end.
func (s *JSONScanner) step(b []byte, i, to int) (n int, done bool) {
	for ; i < to; i++ {
		c := b[i]
		if s.inString {
			switch {
			case s.escaped:
				s.escaped = false
			case c == '\\':
				s.escaped = true
			case c == '"':
				if s.inString = false; s.depth == 0 {
					return i + 1, true
				}
			}
			continue
		}
		switch c {
		case '"':
			s.inString, s.Started = true, true
		case '{', '[':
			if s.InScalar {
				return i, true
			}
			s.depth++
			s.Started = true
		case '}', ']':
			if s.depth == 0 {
				return i, true
			}
			s.depth--
			switch {
			case s.depth == 0:
				return i + 1, true
			case s.depth == 1 && s.Inner == 0:
				s.Inner = s.Read + i + 1
			}
		case ',', ':', ' ', '\n', '\r', '\t':
			if s.depth == 0 {
				return i, true
			}
		default:
			s.Started = true
			s.InScalar = s.depth == 0
		}
	}
	return i, false
}
