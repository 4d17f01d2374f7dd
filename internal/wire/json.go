package wire

import (
	"bytes"
	"encoding/json"
	"errors"

	kjson "sigs.k8s.io/json"
)

// ErrJSON is a text that is no JSON.
var ErrJSON = errors.New("malformed JSON")

// IsSpace reports whether c is white space between the values of JSON.
func IsSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// EachMember calls do for the members of an object in memory. Values are not copied.
func EachMember(data []byte, do func(key, value []byte) error) error {
	next := func(want byte) bool {
		data = bytes.TrimLeft(data, " \n\r\t")
		if len(data) == 0 || data[0] != want {
			return false
		}
		data = data[1:]
		return true
	}
	value := func() []byte {
		data = bytes.TrimLeft(data, " \n\r\t")
		var s JSONScanner
		n, _ := s.Feed(data)
		value := data[:n]
		data = data[n:]
		return value
	}
	if !next('{') {
		return ErrJSON
	}
	for first := true; !next('}'); first = false {
		if !first && !next(',') {
			return ErrJSON
		}
		key, err := Unquote(value())
		if err != nil || !next(':') {
			return ErrJSON
		}
		if err := do(key, value()); err != nil {
			return err
		}
	}
	return nil
}

// Unquote decodes a string, in place if it has no escapes.
func Unquote(value []byte) ([]byte, error) {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return nil, ErrJSON
	}
	if text, ok := PlainText(value); ok {
		return text, nil
	}
	var s string
	if kjson.UnmarshalCaseSensitivePreserveInts(value, &s) != nil {
		return nil, ErrJSON
	}
	return []byte(s), nil
}

// PlainText is the content of a string without escapes and in ASCII; ok is false for any other.
func PlainText(raw []byte) (text []byte, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	text = raw[1 : len(raw)-1]
	for _, c := range text {
		if c < ' ' || c >= 0x7f || c == '\\' {
			return nil, false
		}
	}
	return text, true
}

// PlainInteger is the value of a number of at most 18 digits, without fraction or exponent; ok is
// false for any other.
func PlainInteger(raw []byte) (n int64, ok bool) {
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

// StringEnd is the end of the string that begins at i; -1 if it has none.
func StringEnd(data []byte, i int) int {
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

// Valid returns ErrJSON if a value is malformed.
func Valid(value []byte) error {
	if !json.Valid(value) {
		return ErrJSON
	}
	return nil
}

// JSONScanner finds the end of one JSON value that comes in pieces: it follows brackets and
// strings, and nothing else.
type JSONScanner struct {
	// Started reports whether the value has begun, and InScalar whether the end of the stream could
	// end it: it is a number, true, false or null outside all brackets.
	Started, InScalar bool

	depth    int
	inString bool
	escaped  bool
}

// Feed takes the next bytes. It returns how many belong to the value, and whether it is complete.
func (s *JSONScanner) Feed(b []byte) (n int, done bool) {
	for i := 0; i < len(b); i++ {
		c := b[i]
		if s.inString {
			if i, done = s.string(b, i); done && s.depth == 0 {
				return i + 1, true
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
			if s.depth--; s.depth == 0 {
				return i + 1, true
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
	return len(b), false
}

// string goes on inside a string from b[i], and returns where it ended or the last byte seen. It
// goes byte by byte: bytes.IndexByte gained a tenth on a list of pods, whose strings are short.
func (s *JSONScanner) string(b []byte, i int) (last int, ended bool) {
	for ; i < len(b); i++ {
		if s.escaped {
			s.escaped = false
			continue
		}
		for i < len(b) && b[i] != '"' && b[i] != '\\' {
			i++
		}
		switch {
		case i == len(b):
		case b[i] == '"':
			s.inString = false
			return i, true
		default:
			s.escaped = true
		}
	}
	return len(b) - 1, false
}
