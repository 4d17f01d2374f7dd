package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf8"
)

// CBORMagic is the tag that opens every CBOR document of Kubernetes (RFC 8949, 3.4.6; KEP-4222).
const CBORMagic = "\xd9\xd9\xf7"

// ErrCBOR is a text that is no CBOR, or none that has a form in JSON.
var ErrCBOR = errors.New("malformed CBOR")

// The major types of CBOR.
const (
	cborUnsigned = iota
	cborNegative
	cborBytes
	cborText
	cborArray
	cborMap
	cborTag
	cborSimple
)

const (
	cborBreak  = 0xff
	indefinite = math.MaxUint64 // the argument of a container or string that a break ends
	// maxDepth bounds the nesting of arrays and maps; encoding/json refuses 10,000.
	maxDepth = 1000
)

// head is the beginning of a data item.
type head struct {
	major byte
	info  byte
	arg   uint64 // a value, a length or a tag
}

// headSize is how many bytes the head that begins with b has; 0 if there is no such head.
func headSize(b byte) int {
	switch info := b & 0x1f; {
	case info < 24:
		return 1
	case info < 28:
		return 1 + 1<<(info-24)
	case info == 31 && b>>5 != cborUnsigned && b>>5 != cborNegative && b>>5 != cborTag:
		return 1
	}
	return 0
}

// headOf reads a head, of which b has all bytes.
func headOf(b []byte) head {
	h := head{major: b[0] >> 5, info: b[0] & 0x1f}
	switch len(b) {
	case 1:
		h.arg = uint64(h.info)
		if h.info == 31 {
			h.arg = indefinite
		}
	case 2:
		h.arg = uint64(b[1])
	case 3:
		h.arg = uint64(binary.BigEndian.Uint16(b[1:]))
	case 5:
		h.arg = uint64(binary.BigEndian.Uint32(b[1:]))
	default:
		h.arg = binary.BigEndian.Uint64(b[1:])
	}
	return h
}

// isIndefinite reports whether a break ends the item.
func (h head) isIndefinite() bool { return h.info == 31 }

// CBORScanner finds the end of one CBOR data item that comes in pieces. The zero value is at the
// beginning of an item. It follows lengths alone: whether the values make sense is judged when they
// are read.
type CBORScanner struct {
	open  []uint64 // how many items are still to come in each open container
	bytes uint64   // of a string, still to come
	head  [9]byte
	read  int // bytes of head
	begun bool
}

// Feed takes the next bytes. It returns how many belong to the item, and whether it is complete.
func (s *CBORScanner) Feed(b []byte) (n int, done bool, err error) {
	if !s.begun {
		s.begun, s.open = true, append(s.open[:0], 1)
	}
	for len(s.open) > 0 {
		if s.bytes > 0 {
			part := min(s.bytes, uint64(len(b)-n))
			n, s.bytes = n+int(part), s.bytes-part
			if s.bytes > 0 {
				return n, false, nil
			}
			s.closed()
			continue
		}
		if n == len(b) {
			return n, false, nil
		}
		if s.read == 0 {
			s.head[0], s.read = b[n], 1
			n++
		}
		size := headSize(s.head[0])
		if size == 0 {
			return n, false, ErrCBOR
		}
		part := copy(s.head[s.read:size], b[n:])
		n, s.read = n+part, s.read+part
		if s.read < size {
			return n, false, nil
		}
		s.read = 0
		if err := s.item(headOf(s.head[:size])); err != nil {
			return n, false, err
		}
	}
	s.begun = false
	return n, true, nil
}

// item enters the item after its head.
func (s *CBORScanner) item(h head) error {
	last := len(s.open) - 1
	if h.major == cborSimple && h.isIndefinite() {
		if s.open[last] != indefinite {
			return ErrCBOR
		}
		s.open = s.open[:last]
		s.closed()
		return nil
	}
	if s.open[last] != indefinite {
		s.open[last]--
	}
	items := h.arg
	switch h.major {
	case cborBytes, cborText:
		if !h.isIndefinite() {
			s.bytes = h.arg
			items = 0
		}
	case cborMap:
		if items > math.MaxInt64 && !h.isIndefinite() {
			return ErrCBOR
		}
		if !h.isIndefinite() {
			items *= 2
		}
	case cborArray:
		if items == indefinite && !h.isIndefinite() {
			return ErrCBOR
		}
	case cborTag:
		items = 1
	default:
		items = 0
	}
	if items > 0 {
		if len(s.open) > 2*maxDepth {
			return ErrCBOR
		}
		s.open = append(s.open, items)
	}
	if s.bytes == 0 {
		s.closed()
	}
	return nil
}

// closed leaves the containers to which nothing is to come.
func (s *CBORScanner) closed() {
	for len(s.open) > 0 && s.open[len(s.open)-1] == 0 {
		s.open = s.open[:len(s.open)-1]
	}
}

// CBORHead reads the head of an array or a map, of which it returns the number of elements or of
// pairs, and whether a break ends it instead. Tags before it are passed over.
func CBORHead(next func() (byte, error)) (isMap bool, count uint64, open bool, err error) {
	for {
		var b [9]byte
		if b[0], err = next(); err != nil {
			return false, 0, false, err
		}
		size := headSize(b[0])
		if size == 0 {
			return false, 0, false, ErrCBOR
		}
		for i := 1; i < size; i++ {
			if b[i], err = next(); err != nil {
				return false, 0, false, err
			}
		}
		switch h := headOf(b[:size]); h.major {
		case cborTag:
		case cborArray, cborMap:
			return h.major == cborMap, h.arg, h.isIndefinite(), nil
		default:
			return false, 0, false, ErrCBOR
		}
	}
}

// IsCBORBreak reports whether b ends an array or a map without a count.
func IsCBORBreak(b byte) bool { return b == cborBreak }

// EachCBORMember calls do for the members of a map in memory. Values are not copied.
func EachCBORMember(data []byte, do func(key string, value []byte) error) error {
	t := cborReader{in: data}
	h, err := t.untagged()
	if err != nil || h.major != cborMap {
		return ErrCBOR
	}
	err = t.each(h, func() error {
		key, err := t.key()
		if err != nil {
			return err
		}
		var s CBORScanner
		n, done, err := s.Feed(t.in[t.at:])
		if err != nil || !done {
			return ErrCBOR
		}
		t.at += n
		return do(string(key), t.in[t.at-n:t.at])
	})
	if err == nil && t.at != len(data) {
		err = ErrCBOR
	}
	return err
}

// CBORKey is the key of a member, which is an item of its own.
func CBORKey(item []byte) (string, error) {
	r := cborReader{in: item}
	key, err := r.key()
	if err == nil && r.at != len(item) {
		err = ErrCBOR
	}
	return string(key), err
}

// cborReader reads one item in memory.
type cborReader struct {
	in []byte
	at int
}

func (t *cborReader) next() (head, error) {
	if t.at == len(t.in) {
		return head{}, ErrCBOR
	}
	size := headSize(t.in[t.at])
	if size == 0 || size > len(t.in)-t.at {
		return head{}, ErrCBOR
	}
	h := headOf(t.in[t.at : t.at+size])
	t.at += size
	return h, nil
}

func (t *cborReader) untagged() (head, error) {
	for {
		h, err := t.next()
		if err != nil || h.major != cborTag {
			return h, err
		}
	}
}

// each calls do at each element of an array, or at each pair of a map.
func (t *cborReader) each(h head, do func() error) error {
	for i := uint64(0); h.isIndefinite() || i < h.arg; i++ {
		if h.isIndefinite() && t.at < len(t.in) && t.in[t.at] == cborBreak {
			t.at++
			return nil
		}
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// text is the content of a string; one in chunks is put together.
func (t *cborReader) text(h head) ([]byte, error) {
	if !h.isIndefinite() {
		if h.arg > uint64(len(t.in)-t.at) {
			return nil, ErrCBOR
		}
		t.at += int(h.arg)
		return t.in[t.at-int(h.arg) : t.at], nil
	}
	var whole []byte
	err := t.each(h, func() error {
		chunk, err := t.next()
		if err != nil || chunk.major != h.major || chunk.isIndefinite() {
			return ErrCBOR
		}
		text, err := t.text(chunk)
		whole = append(whole, text...)
		return err
	})
	return whole, err
}

func (t *cborReader) key() ([]byte, error) {
	h, err := t.next()
	if err != nil || h.major != cborText && h.major != cborBytes {
		return nil, ErrCBOR
	}
	text, err := t.text(h)
	if err == nil && !utf8.Valid(text) {
		err = errNotUTF8
	}
	return text, err
}

// member is one of a map: its key, and where it stands in the JSON text.
type member struct {
	key        []byte
	start, end int
}

func byKey(a, b member) int { return bytes.Compare(a.key, b.key) }

// The types whose heads AppendCBORHead writes.
const (
	CBORBytesType = cborBytes
	CBORArrayType = cborArray
	CBORMapType   = cborMap
)

// AppendCBORHead appends the head of a string, an array or a map of so many bytes, elements or
// pairs.
func AppendCBORHead(dst []byte, major byte, count uint64) []byte {
	major <<= 5
	switch {
	case count < 24:
		return append(dst, major|byte(count))
	case count <= math.MaxUint8:
		return append(dst, major|24, byte(count))
	case count <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(count))
	case count <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(count))
	}
	return binary.BigEndian.AppendUint64(append(dst, major|27), count)
}

// CBORMap takes the head off a map with a count: it returns the number of pairs, and their bytes.
func CBORMap(item []byte) (pairs uint64, members []byte, err error) {
	r := cborReader{in: item}
	h, err := r.next()
	if err != nil || h.major != cborMap || h.isIndefinite() {
		return 0, nil, ErrCBOR
	}
	return h.arg, item[r.at:], nil
}
