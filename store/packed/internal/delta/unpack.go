package delta

import (
	"encoding/binary"
	"errors"
	"slices"
)

// ErrDamaged is the error for a payload that Pack has not made with that base.
var ErrDamaged = errors.New("delta: the payload is damaged")

// Unpacker opens payloads. The zero value is ready, and keeps its buffers and the last base.
type Unpacker struct {
	of  *Base // of raw
	raw []byte
}

// Unpack returns the document of a payload in dst's memory, or in new memory. of is the base that
// Pack returned.
func (u *Unpacker) Unpack(dst, payload []byte, of *Base) ([]byte, error) {
	if of == nil {
		return append(dst[:0], payload...), nil
	}
	if of.IsTail() {
		return append(append(slices.Grow(dst[:0], len(payload)+len(of.payload)), payload...), of.payload...), nil
	}
	if of.IsAlone() {
		return of.of.unpackAlone(dst, payload)
	}
	from, err := u.base(of)
	switch {
	case err != nil:
		return nil, err
	case len(payload) == 0: // of a new base, which is the document itself
		return append(dst[:0], from...), nil
	}
	return apply(dst, payload, from, of.of.codes)
}

// base is the document of a base, until the next one is asked for.
func (u *Unpacker) base(of *Base) ([]byte, error) {
	if of.isRoot() {
		return of.of.raw, nil
	}
	if u.of != of {
		u.of = nil
		raw, err := apply(u.raw, of.payload, of.of.raw, nil)
		if err != nil {
			return nil, err
		}
		u.of, u.raw = of, raw
	}
	return u.raw, nil
}

// minStep is the bytes of the shortest step with a copy, and the bits of a coded one, so that a
// false length costs no memory.
const minStep = 3

// apply returns the document that a payload makes of from.
func apply(dst, payload, from []byte, c *codes) ([]byte, error) {
	length, payload, err := uvarint(payload)
	if err != nil {
		return nil, err
	}
	isCoded := length&1 != 0
	length >>= 1
	if length > MaxDocument || isCoded && c == nil {
		return nil, ErrDamaged
	}
	if isCoded {
		size := uint64(len(payload)) * 8
		if length > size+(size/minStep+1)*uint64(len(from)) {
			return nil, ErrDamaged
		}
		return c.run(room(dst, int(length)), payload, from)
	}
	size, rest, err := uvarint(payload)
	if err != nil || size > uint64(len(rest)) {
		return nil, ErrDamaged
	}
	ops, literals := rest[:size], rest[size:]
	if length > uint64(len(literals))+(size/minStep+1)*uint64(len(from)) {
		return nil, ErrDamaged
	}
	return run(room(dst, int(length))[:0], ops, literals, from, int(length))
}

// room returns length bytes, in dst's memory if that suffices.
func room(dst []byte, length int) []byte {
	if cap(dst) < length {
		return make([]byte, length)
	}
	return dst[:length]
}

// run does the steps of a coded script, and fills document.
func (c *codes) run(document, words, from []byte) ([]byte, error) {
	r := coded{data: words}
	at, shift, before := 0, 0, byte(0)
	for at < len(document) {
		step := c.step(&r)
		count, length := step[0], step[1]
		if count > uint64(len(document)-at) || length > uint64(len(document)-at)-count || count+length == 0 || r.have < 0 {
			return nil, ErrDamaged
		}
		c.literals(&r, document[at:at+int(count)], before)
		at += int(count)
		if length == 0 {
			before = document[at-1]
			continue
		}
		shift += int(step[2]>>1) ^ -int(step[2]&1) // a varint has its sign in its lowest bit
		source := at + shift
		if source < 0 || source > len(from) || length > uint64(len(from)-source) {
			return nil, ErrDamaged
		}
		at += copy(document[at:], from[source:source+int(length)])
		before = document[at-1]
	}
	if r.have < 0 || r.have > 7 || len(r.data) > 0 {
		return nil, ErrDamaged
	}
	return document, nil
}

// run does the steps of a script. The document has the given length.
func run(dst, ops, literals, from []byte, length int) ([]byte, error) {
	shift := 0
	for len(ops) > 0 {
		n, rest, err := uvarint(ops)
		if err != nil || n > uint64(len(literals)) || n > uint64(length-len(dst)) {
			return nil, ErrDamaged
		}
		dst, literals, ops = append(dst, literals[:n]...), literals[n:], rest
		if len(ops) == 0 {
			break
		}
		if n, ops, err = uvarint(ops); err != nil {
			return nil, err
		}
		moved, size := binary.Varint(ops)
		if size <= 0 || moved > MaxDocument || moved < -MaxDocument {
			return nil, ErrDamaged
		}
		ops, shift = ops[size:], shift+int(moved)
		source := len(dst) + shift
		if source < 0 || source > len(from) || n > uint64(len(from)-source) || n > uint64(length-len(dst)) {
			return nil, ErrDamaged
		}
		dst = append(dst, from[source:source+int(n)]...)
	}
	if len(dst) != length || len(literals) != 0 {
		return nil, ErrDamaged
	}
	return dst, nil
}

func uvarint(data []byte) (n uint64, rest []byte, err error) {
	n, size := binary.Uvarint(data)
	if size <= 0 {
		return 0, nil, ErrDamaged
	}
	return n, data[size:], nil
}
