package wire

import (
	"encoding/json"
	"errors"

	kjson "sigs.k8s.io/json"
)

// ErrJSON is a text that is no JSON.
var ErrJSON = errors.New("malformed JSON")

// IsSpace reports whether c is white space between the values of JSON.
func IsSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// EachMember calls do for the members of the object that data begins with. Values are not copied.
func EachMember(data []byte, do func(key, value []byte) error) error {
	return members(data, func(key, rest []byte) (value []byte, err error) {
		value = valueIn(rest)
		return value, do(key, value)
	})
}

// MemberFrom is the text from the value of a member on; nil if the object that data begins with has
// no such member. The value is not scanned.
func MemberFrom(data []byte, name string) (from []byte) {
	_ = members(data, func(key, rest []byte) (value []byte, err error) {
		if string(key) == name {
			from = rest
			return nil, errFound
		}
		return valueIn(rest), nil
	})
	return from
}

var errFound = errors.New("found")

// members calls do with each key and the text after its colon. do returns the value there.
func members(data []byte, do func(key, rest []byte) (value []byte, err error)) error {
	next := func(want byte) bool {
		data = trimSpace(data)
		if len(data) == 0 || data[0] != want {
			return false
		}
		data = data[1:]
		return true
	}
	if !next('{') {
		return ErrJSON
	}
	for first := true; !next('}'); first = false {
		if !first && !next(',') {
			return ErrJSON
		}
		data = trimSpace(data)
		raw := valueIn(data)
		data = data[len(raw):]
		key, err := Unquote(raw)
		if err != nil || !next(':') {
			return ErrJSON
		}
		data = trimSpace(data)
		value, err := do(key, data)
		if err != nil {
			return err
		}
		data = data[len(value):]
	}
	return nil
}

func trimSpace(data []byte) []byte {
	for len(data) > 0 && IsSpace(data[0]) {
		data = data[1:]
	}
	return data
}

// valueIn is the value that data begins with, or all of it if the value has no end.
func valueIn(data []byte) []byte {
	if len(data) > 0 && data[0] == '"' {
		if end := StringEnd(data, 0); end >= 0 {
			data = data[:end]
		}
		return data
	}
	var s JSONScanner
	n, _ := s.Feed(data)
	return data[:n]
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
	i := 0
	for ; i+wordSize <= len(text); i += wordSize {
		if !plain(word(text, i)) {
			return nil, false
		}
	}
	for _, c := range text[i:] {
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
	for i++; i+wordSize <= len(data); {
		x := word(data, i)
		found := first(x, '"') | first(x, '\\')
		if found == 0 {
			i += wordSize
			continue
		}
		if i += index(found); data[i] == '"' {
			return i + 1
		}
		i += 2
	}
	for ; i < len(data); i++ {
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
