package sharing

import (
	"bytes"
	"errors"

	kjson "sigs.k8s.io/json"
)

// errForm: the input is not of the form that can be taken apart. The plain decoder has the last word on it.
var errForm = errors.New("not of the form that is taken apart")

// document is a JSON text that is read from its beginning. The ends of objects and arrays are found value by value, each
// at most once, so that any of them can be passed over without being read, and what is equal in the object before is
// not looked at otherwise.
type document struct {
	data  []byte
	at    int   // what comes before is read
	depth int   // of the objects and arrays that are being read
	open  []int // brackets that are open, while scanning

	brackets []bracket // of the value that was scanned last, in the order in which they open
	next     int       // the first one from at on, or one before that
}

type bracket struct{ start, end int }

// maxDepth is the deepest nesting that is taken apart; encoding/json refuses 10,000.
const maxDepth = 500

func (d *document) begin(data []byte) {
	d.data, d.at, d.depth, d.next, d.brackets = data, 0, 0, 0, d.brackets[:0]
}

// maxBrackets is for how many brackets there is room between two texts: a pod has some 500.
const maxBrackets = 1 << 12

// end lets go of the text.
func (d *document) end() {
	d.data = nil
	if cap(d.brackets) > maxBrackets {
		d.brackets = nil
	}
}

// scan finds the ends of what begins at d.at. It looks at brackets and strings only: what is between them, and whether
// brackets match, is judged when it is read.
func (d *document) scan() error {
	data := d.data
	d.open, d.brackets, d.next = d.open[:0], d.brackets[:0], 0
	for i := d.at; i < len(data); i++ {
		switch data[i] {
		case '"':
			end := stringEnd(data, i)
			if end < 0 {
				return errForm
			}
			i = end - 1
		case '{', '[':
			if len(d.open) == maxDepth {
				return errForm
			}
			d.open = append(d.open, len(d.brackets))
			d.brackets = append(d.brackets, bracket{start: i})
		case '}', ']':
			last := d.open[len(d.open)-1]
			d.open = d.open[:len(d.open)-1]
			d.brackets[last].end = i + 1
			if len(d.open) == 0 {
				return nil
			}
		}
	}
	return errForm
}

// bracketed returns the object or array that begins at d.at; nil where it has no end.
func (d *document) bracketed() []byte {
	for d.next < len(d.brackets) && d.brackets[d.next].start < d.at {
		d.next++
	}
	if (d.next == len(d.brackets) || d.brackets[d.next].start > d.at) && d.scan() != nil {
		d.brackets = d.brackets[:0]
		return nil
	}
	return d.data[d.at:d.brackets[d.next].end]
}

// stringEnd is the end of the string that begins at i; -1 where it has none.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

// peek passes over white space and returns the next byte, 0 at the end.
func (d *document) peek() byte {
	for d.at < len(d.data) {
		c := d.data[d.at]
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
		d.at++
	}
	return 0
}

// take reads one byte of structure.
func (d *document) take(want byte) bool {
	if d.peek() != want {
		return false
	}
	d.at++
	return true
}

// value returns the next value without passing over it; nil where there is none.
func (d *document) value() []byte {
	switch c := d.peek(); c {
	case '{', '[':
		return d.bracketed()
	case '"':
		return d.data[d.at:max(d.at, stringEnd(d.data, d.at))]
	}
	end := d.at
	for end < len(d.data) && bytes.IndexByte(scalarEnds, d.data[end]) < 0 {
		end++
	}
	return d.data[d.at:end]
}

var scalarEnds = []byte(",]} \n\r\t\":{[")

// key reads a member's key, and the colon.
func (d *document) key() ([]byte, error) {
	if d.peek() != '"' {
		return nil, errForm
	}
	raw := d.value()
	text, ok := plainText(raw)
	if !ok { // the keys of managedFields have escapes
		var unquoted string
		if kjson.UnmarshalCaseSensitivePreserveInts(raw, &unquoted) != nil {
			return nil, errForm
		}
		text = []byte(unquoted)
	}
	d.at += len(raw)
	if !d.take(':') {
		return nil, errForm
	}
	return text, nil
}

// members calls each for every member of an object or element of an array, with the document at it.
func (d *document) members(open, end byte, each func() error) error {
	if !d.take(open) || d.depth == maxDepth {
		return errForm
	}
	if d.take(end) {
		return nil
	}
	d.depth++ // an error ends the document
	for {
		if err := each(); err != nil {
			return err
		}
		if d.take(end) {
			d.depth--
			return nil
		}
		if !d.take(',') {
			return errForm
		}
	}
}

// plainText is the content of a string that has neither escapes nor anything outside ASCII.
func plainText(raw []byte) ([]byte, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	text := raw[1 : len(raw)-1]
	for _, c := range text {
		if c < ' ' || c >= 0x7f || c == '\\' {
			return nil, false
		}
	}
	return text, true
}

// plainInteger is the value of a number that is written as integers usually are, and of at most 18 digits.
func plainInteger(raw []byte) (n int64, ok bool) {
	digits := raw
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(raw) > 1 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(raw) {
		n = -n
	}
	return n, true
}
