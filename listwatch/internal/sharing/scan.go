package sharing

import (
	"bytes"
	"errors"

	kjson "sigs.k8s.io/json"
)

// errForm: the input is not of the form that can be taken apart. The plain decoder has the last word on it.
var errForm = errors.New("not of the form that is taken apart")

// document is a JSON text with the ends of its objects and arrays, found in one pass, so that any of them can be passed
// over without being read.
type document struct {
	data []byte
	at   int   // what comes before is read
	next int   // the first bracket from at on
	open []int // brackets that are open, while scanning

	brackets []bracket // in the order in which they open
}

type bracket struct {
	end  int // of the value, in data
	next int // the first bracket after that
}

// maxDepth is the deepest nesting that is taken apart; encoding/json refuses 10,000.
const maxDepth = 500

// scan reads data's structure. It looks at brackets and strings only: what is between them, and whether brackets match,
// is judged when it is read.
func (d *document) scan(data []byte) error {
	d.data, d.at, d.next, d.open, d.brackets = data, 0, 0, d.open[:0], d.brackets[:0]
	for i := 0; i < len(data); i++ {
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
			d.brackets = append(d.brackets, bracket{})
		case '}', ']':
			if len(d.open) == 0 {
				return errForm
			}
			last := d.open[len(d.open)-1]
			d.open = d.open[:len(d.open)-1]
			d.brackets[last] = bracket{end: i + 1, next: len(d.brackets)}
		}
	}
	if len(d.open) > 0 {
		return errForm
	}
	return nil
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
	if want == '{' || want == '[' {
		d.next++
	}
	return true
}

// value returns the next value without passing over it; nil where there is none.
func (d *document) value() []byte {
	switch c := d.peek(); c {
	case '{', '[':
		return d.data[d.at:d.brackets[d.next].end]
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

// pass passes over the value that value has returned.
func (d *document) pass(value []byte) {
	if value[0] == '{' || value[0] == '[' {
		d.next = d.brackets[d.next].next
	}
	d.at += len(value)
}

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
	if !d.take(open) {
		return errForm
	}
	if d.take(end) {
		return nil
	}
	for {
		if err := each(); err != nil {
			return err
		}
		if d.take(end) {
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
