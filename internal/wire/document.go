package wire

import "bytes"

// Document is a JSON text in memory that is read from its beginning. It finds the ends of objects
// and arrays value by value, each at most once, so that any of them can be passed over unread. It
// is not safe for concurrent use. Its only error is [ErrJSON].
type Document struct {
	Data  []byte
	At    int // the text before is read
	Depth int // of the objects and arrays that are being read

	open     []int     // brackets that are open during a scan
	brackets []bracket // of the value that was scanned last, in the order in which they open
	next     int       // the first bracket from At on, or one before
}

type bracket struct{ start, end int }

// maxNesting is the deepest nesting that a Document reads; encoding/json refuses 10,000.
const maxNesting = 500

// Begin begins with another text.
func (d *Document) Begin(data []byte) {
	d.Data, d.At, d.Depth, d.next, d.brackets = data, 0, 0, 0, d.brackets[:0]
}

// maxBrackets is the number of brackets for which memory is kept between two texts. A pod has
// some 500.
const maxBrackets = 1 << 12

// End lets go of the text.
func (d *Document) End() {
	d.Data = nil
	if cap(d.brackets) > maxBrackets {
		d.brackets = nil
	}
}

// scan finds the ends of the value that begins at d.At, and of those in it. It looks at brackets
// and strings only. Whether brackets match, and the text between them, is judged by its reader.
func (d *Document) scan() bool {
	data := d.Data
	d.open, d.brackets, d.next = d.open[:0], d.brackets[:0], 0
	var in uint64 // as in quoted
	for i := d.At; i < len(data); {
		inside := in>>(64-wordSize) != 0
		if i+wordSize > len(data) || first(word(data, i), '\\') != 0 {
			switch {
			case inside:
				if i, in = StringEnd(data, i-1), 0; i < 0 {
					return false
				}
				continue
			case data[i] == '"':
				in = ones
			case isBracket(data[i]):
				if more, ok := d.bracket(i); !more {
					return ok
				}
			}
			i++
			continue
		}
		x := word(data, i)
		in = quoted(x, in)
		found := (equals(x|lower, '{') | equals(x|lower, '}')) & ((in ^ ones) << 7)
		for ; found != 0; found &= found - 1 {
			if more, ok := d.bracket(i + index(found)); !more {
				return ok
			}
		}
		i += wordSize
	}
	return false
}

func isBracket(c byte) bool { c |= lower & 0xff; return c == '{' || c == '}' }

// bracket notes a bracket. After the last one, or if there are too many, more is false.
func (d *Document) bracket(at int) (more, ok bool) {
	if d.Data[at]|lower&0xff == '{' {
		if len(d.open) == maxNesting {
			return false, false
		}
		d.open = append(d.open, len(d.brackets))
		d.brackets = append(d.brackets, bracket{start: at})
		return true, true
	}
	last := len(d.open) - 1
	d.brackets[d.open[last]].end = at + 1
	d.open = d.open[:last]
	return last > 0, true
}

// bracketed returns the object or array that begins at d.At; nil if it has no end.
func (d *Document) bracketed() []byte {
	for d.next < len(d.brackets) && d.brackets[d.next].start < d.At {
		d.next++
	}
	if (d.next == len(d.brackets) || d.brackets[d.next].start > d.At) && !d.scan() {
		d.brackets = d.brackets[:0]
		return nil
	}
	return d.Data[d.At:d.brackets[d.next].end]
}

// Peek passes over white space and returns the next byte, 0 at the end of the text.
func (d *Document) Peek() byte {
	for d.At < len(d.Data) {
		if c := d.Data[d.At]; !IsSpace(c) {
			return c
		}
		d.At++
	}
	return 0
}

// Take reads one byte of structure.
func (d *Document) Take(want byte) bool {
	if d.Peek() != want {
		return false
	}
	d.At++
	return true
}

// Value returns the next value without passing over it; nil if there is none.
func (d *Document) Value() []byte {
	switch c := d.Peek(); c {
	case '{', '[':
		return d.bracketed()
	case '"':
		return d.Data[d.At:max(d.At, StringEnd(d.Data, d.At))]
	}
	end := d.At
	for end < len(d.Data) && bytes.IndexByte(scalarEnds, d.Data[end]) < 0 {
		end++
	}
	return d.Data[d.At:end]
}

var scalarEnds = []byte(",]} \n\r\t\":{[")

// Key reads the key of a member, and the colon.
func (d *Document) Key() ([]byte, error) {
	if d.Peek() != '"' {
		return nil, ErrJSON
	}
	raw := d.Value()
	text, err := Unquote(raw)
	if err != nil {
		return nil, err
	}
	d.At += len(raw)
	if !d.Take(':') {
		return nil, ErrJSON
	}
	return text, nil
}

// Members calls each for every member of an object or element of an array, with the document at it.
// After an error the document must not be read on.
func (d *Document) Members(open, end byte, each func() error) error {
	if !d.Take(open) || d.Depth == maxNesting {
		return ErrJSON
	}
	if d.Take(end) {
		return nil
	}
	d.Depth++
	for {
		if err := each(); err != nil {
			return err
		}
		if d.Take(end) {
			d.Depth--
			return nil
		}
		if !d.Take(',') {
			return ErrJSON
		}
	}
}
