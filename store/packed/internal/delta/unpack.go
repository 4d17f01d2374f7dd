package delta

import (
	"encoding/binary"
	"errors"
)

// ErrDamaged is the error for a payload that Pack has not made with that base.
var ErrDamaged = errors.New("delta: the payload is damaged")

// Unpacker opens payloads. The zero value is ready, and keeps its buffers and the last base.
type Unpacker struct {
	of       *Base // of raw
	raw      []byte
	literals []byte
}

// Unpack returns the document of a payload in dst's memory, or in new memory. of is the base that
// Pack returned.
func (u *Unpacker) Unpack(dst, payload []byte, of *Base) ([]byte, error) {
	if of == nil {
		return append(dst[:0], payload...), nil
	}
	from, err := u.base(of)
	switch {
	case err != nil:
		return nil, err
	case len(payload) == 0: // of a new base, which is the document itself
		return append(dst[:0], from...), nil
	}
	return u.apply(dst, payload, from, of.of.code)
}

// base is the document of a base, until the next one is asked for.
func (u *Unpacker) base(of *Base) ([]byte, error) {
	if of.isRoot() {
		return of.of.raw, nil
	}
	if u.of != of {
		u.of = nil
		raw, err := u.apply(u.raw, of.payload, of.of.raw, nil)
		if err != nil {
			return nil, err
		}
		u.of, u.raw = of, raw
	}
	return u.raw, nil
}

// head is the lengths that begin a payload.
type head struct{ document, ops, literals uint64 }

func readHead(payload []byte) (h head, rest []byte, err error) {
	for _, field := range []*uint64{&h.document, &h.ops, &h.literals} {
		if *field, payload, err = uvarint(payload); err != nil {
			return h, nil, err
		}
	}
	if h.document > MaxDocument || h.ops > uint64(len(payload)) {
		return h, nil, ErrDamaged
	}
	return h, payload, nil
}

// minStep is the bytes of the shortest step with a copy, so that a false length costs no memory.
const minStep = 3

// apply returns the document that a payload makes of from.
func (u *Unpacker) apply(dst, payload, from []byte, c *code) ([]byte, error) {
	h, rest, err := readHead(payload)
	if err != nil {
		return nil, err
	}
	ops, literals := rest[:h.ops], rest[h.ops:]
	if h.literals&1 != 0 {
		if c == nil || h.literals>>1 > uint64(len(literals))*8 {
			return nil, ErrDamaged
		}
		if literals, err = c.decode(u.literals[:0], literals, int(h.literals>>1)); err != nil {
			return nil, err
		}
		u.literals = literals
	} else if h.literals>>1 != uint64(len(literals)) {
		return nil, ErrDamaged
	}
	if h.document > uint64(len(literals))+(h.ops/minStep+1)*uint64(len(from)) {
		return nil, ErrDamaged
	}
	if uint64(cap(dst)) < h.document {
		dst = make([]byte, 0, h.document)
	}
	return run(dst[:0], ops, literals, from, int(h.document))
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
