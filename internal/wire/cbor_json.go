package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// AppendJSON appends to dst the JSON text of a whole CBOR data item, by the rules of the API
// machinery (KEP-4222): byte strings are texts, unless a tag asks for base64 or hexadecimal digits,
// and floats keep a point or an exponent. Members are sorted by their keys: servers write them in a
// random order, and equal objects shall become equal texts.
//
// The error is ErrCBOR, or says which kind of value has no form in JSON. It quotes no value. What
// was appended before an error means nothing.
func AppendJSON(dst, item []byte) ([]byte, error) {
	t := transcoder{cborReader: cborReader{in: item}, out: dst}
	err := t.value(0)
	if err == nil && t.at != len(item) {
		err = ErrCBOR
	}
	return t.out, err
}

// What has no form in JSON.
var (
	errWide     = errors.New("a whole number has more than 64 bits")
	errNoNumber = errors.New("a number is infinite, or no number")
	errNotUTF8  = errors.New("a text is not UTF-8")
	errTwice    = errors.New("an object has a member twice")
	errTag      = errors.New("the tag of a byte string stands before another value")
	errDeep     = errors.New("values are nested too deep")
)

type transcoder struct {
	cborReader
	out     []byte
	members []member // of the maps that are open
	scratch []byte
	depth   int
}

// The tags that say how a byte string is written in a text format (RFC 8949, 3.4.5.2), and those
// of values that Kubernetes does not write: times and large numbers.
const (
	tagNegativeBignum                   = 3 // 0 to 2 are times and a large number, too
	tagBase64URL, tagBase64, tagHexText = 21, 22, 23
)

// value writes the next item. Tag says how a byte string is written: the last such tag before it.
func (t *transcoder) value(tag uint64) error {
	h, err := t.next()
	if err != nil {
		return err
	}
	if tag != 0 && h.major != cborBytes && h.major != cborTag {
		return errTag
	}
	switch h.major {
	case cborUnsigned:
		if h.arg > math.MaxInt64 {
			return errWide
		}
		t.out = strconv.AppendUint(t.out, h.arg, 10)
	case cborNegative:
		if h.arg > math.MaxInt64 {
			return errWide
		}
		t.out = strconv.AppendInt(t.out, -1-int64(h.arg), 10)
	case cborBytes, cborText:
		return t.string(h, tag)
	case cborArray, cborMap:
		if t.depth++; t.depth > maxDepth {
			return errDeep
		}
		if h.major == cborMap {
			err = t.object(h)
		} else {
			err = t.array(h)
		}
		t.depth--
		return err
	case cborTag:
		if h.arg <= tagNegativeBignum {
			return fmt.Errorf("a value has the tag %d, which Kubernetes does not write", h.arg)
		}
		if t.depth++; t.depth > maxDepth {
			return errDeep
		}
		if h.arg < tagBase64URL || h.arg > tagHexText {
			h.arg = tag
		}
		err = t.value(h.arg)
		t.depth--
		return err
	case cborSimple:
		return t.simple(h)
	}
	return nil
}

func (t *transcoder) simple(h head) error {
	switch h.info {
	case 20:
		t.out = append(t.out, "false"...)
		return nil
	case 21:
		t.out = append(t.out, "true"...)
		return nil
	case 22:
		t.out = append(t.out, "null"...)
		return nil
	case 25:
		return t.float(half(uint16(h.arg)))
	case 26:
		return t.float(float64(math.Float32frombits(uint32(h.arg))))
	case 27:
		return t.float(math.Float64frombits(h.arg))
	}
	return ErrCBOR
}

// half is the value of a float of 16 bits.
func half(bits uint16) float64 {
	sign, exponent, fraction := bits>>15, int(bits>>10&0x1f), float64(bits&0x3ff)
	value := math.Ldexp(1+fraction/1024, exponent-15)
	switch exponent {
	case 0:
		value = math.Ldexp(fraction/1024, -14)
	case 0x1f:
		value = math.Inf(1)
	}
	if sign == 1 {
		value = math.Copysign(value, -1)
	}
	return value
}

func (t *transcoder) float(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return errNoNumber
	}
	start := len(t.out)
	t.out = strconv.AppendFloat(t.out, f, 'g', -1, 64)
	if bytes.IndexByte(t.out[start:], '.') < 0 && bytes.IndexByte(t.out[start:], 'e') < 0 {
		t.out = append(t.out, ".0"...)
	}
	return nil
}

func (t *transcoder) string(h head, tag uint64) error {
	text, err := t.text(h)
	if err != nil {
		return err
	}
	if h.major == cborBytes {
		switch tag {
		case tagBase64URL, tagBase64, tagHexText:
			t.out = append(t.out, '"')
			switch tag {
			case tagBase64URL:
				t.out = base64.RawURLEncoding.AppendEncode(t.out, text)
			case tagBase64:
				t.out = base64.StdEncoding.AppendEncode(t.out, text)
			default:
				t.out = hex.AppendEncode(t.out, text)
			}
			t.out = append(t.out, '"')
			return nil
		}
	} else if !utf8.Valid(text) {
		return errNotUTF8
	}
	t.quote(text)
	return nil
}

// quote writes a string of JSON. Bytes that are not UTF-8 become U+FFFD, as in encoding/json.
func (t *transcoder) quote(text []byte) {
	const digits = "0123456789abcdef"
	t.out = append(t.out, '"')
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRune(text[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		t.out = append(t.out, text[from:i]...)
		switch {
		case c >= utf8.RuneSelf:
			t.out = append(t.out, "\uFFFD"...)
		case c == '"' || c == '\\':
			t.out = append(t.out, '\\', c)
		case c == '\n':
			t.out = append(t.out, `\n`...)
		default:
			t.out = append(t.out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i += size
		from = i
	}
	t.out = append(append(t.out, text[from:]...), '"')
}

func (t *transcoder) array(h head) error {
	t.out = append(t.out, '[')
	first := true
	err := t.each(h, func() error {
		if !first {
			t.out = append(t.out, ',')
		}
		first = false
		return t.value(0)
	})
	t.out = append(t.out, ']')
	return err
}

func (t *transcoder) object(h head) error {
	t.out = append(t.out, '{')
	start, mine := len(t.out), len(t.members)
	err := t.each(h, func() error {
		if len(t.members) > mine {
			t.out = append(t.out, ',')
		}
		key, err := t.key()
		if err != nil {
			return err
		}
		m := member{key: key, start: len(t.out)}
		t.quote(key)
		t.out = append(t.out, ':')
		if err := t.value(0); err != nil {
			return err
		}
		m.end = len(t.out)
		t.members = append(t.members, m)
		return nil
	})
	if err != nil {
		return err
	}
	members := t.members[mine:]
	if !slices.IsSortedFunc(members, byKey) {
		slices.SortFunc(members, byKey)
		t.scratch = append(t.scratch[:0], t.out[start:]...)
		t.out = t.out[:start]
		for i, m := range members {
			if i > 0 {
				t.out = append(t.out, ',')
			}
			t.out = append(t.out, t.scratch[m.start-start:m.end-start]...)
		}
	}
	for i := 1; i < len(members); i++ {
		if bytes.Equal(members[i-1].key, members[i].key) {
			return errTwice
		}
	}
	clear(members)
	t.members = t.members[:mine]
	t.out = append(t.out, '}')
	return nil
}
