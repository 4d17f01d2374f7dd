package sharing

import (
	"encoding/binary"
	"reflect"
)

// wireBytes is the wire type of strings, bytes and messages.
const wireBytes = 2

// Unmarshal decodes a protobuf message into obj, a pointer to a zero struct with generated code. data may be reused
// afterwards. The error is the generated code's.
func (m *Memo) Unmarshal(data []byte, obj unmarshaler) error {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return obj.Unmarshal(data)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begin(len(data))
	return m.message(m.planOf(v.Type().Elem()), v.Elem(), data)
}

// message decodes one message into dst, which is zero.
func (m *Memo) message(p *plan, dst reflect.Value, data []byte) error {
	plain := plainRun{to: dst, data: data}
	last := 0
	for at := 0; at < len(data); {
		number, wire, size := next(data[at:])
		if size == 0 || number <= last || number >= len(p.fields) || !p.fields[number].takes(wire) {
			return plain.all()
		}
		f := p.fields[number]
		end := at + size
		for !f.single && end < len(data) {
			again, wire, size := next(data[end:])
			if size == 0 || again != number {
				break
			}
			if !f.takes(wire) {
				return plain.all()
			}
			end += size
		}
		switch err := m.field(f, dst, &plain, at, end); {
		case err == errForm:
			return plain.all()
		case err != nil:
			return err
		}
		at, last = end, number
	}
	return plain.until(len(data))
}

// takes reports whether a field of that wire type is one that this code knows. What it leaves to the generated code, that
// code judges.
func (f *field) takes(wire int) bool { return f != nil && (wire == wireBytes || f.shape <= leaf) }

// field decodes the run of one field, data[at:end], or leaves it to the plain run.
func (m *Memo) field(f *field, dst reflect.Value, plain *plainRun, at, end int) error {
	looked := f.shape != scalar && f.whole.wanted()
	if !looked && f.shape <= leaf {
		return f.checkEntries(plain.data[at:end])
	}
	if err := plain.until(at); err != nil {
		return err
	}
	plain.from = end
	run, into := plain.data[at:end], dst.Field(f.index)
	var k key
	if looked {
		if k = m.keyOf(run); m.find(f.whole, k, len(run), into) {
			return nil
		}
	}
	if err := m.decode(f, into, plain, run); err != nil {
		return err
	}
	if looked {
		m.keep(f.whole, k, len(run), into)
	}
	return nil
}

// decode decodes the run of one field into its place.
func (m *Memo) decode(f *field, into reflect.Value, around *plainRun, run []byte) error {
	if f.shape == leaf {
		if err := f.checkEntries(run); err != nil {
			return err
		}
		return around.unmarshal(run)
	}
	if f.nested == nil {
		f.nested = m.planOf(f.elem)
	}
	switch f.shape {
	case message:
		return m.message(f.nested, into, payload(run))
	case pointer:
		into.Set(reflect.New(f.elem))
		return m.message(f.nested, into.Elem(), payload(run))
	}
	return m.elements(f, into, run)
}

// elements decodes a run of repeated messages.
func (m *Memo) elements(f *field, into reflect.Value, run []byte) error {
	count := 0
	for rest := run; len(rest) > 0; count++ {
		_, _, size := next(rest)
		rest = rest[size:]
	}
	into.Grow(count)
	into.SetLen(count)
	for i := range count {
		_, _, size := next(run)
		data, elem := payload(run[:size]), into.Index(i)
		run = run[size:]
		var k key
		looked := f.each.wanted()
		if looked {
			if k = m.keyOf(data); m.find(f.each, k, len(data), elem) {
				continue
			}
		}
		if err := m.message(f.nested, elem, data); err != nil {
			return err
		}
		if looked {
			m.keep(f.each, k, len(data), elem)
		}
	}
	return nil
}

// checkEntries looks into the entries of a map. Generated code lets a key or a value reach past its entry into the
// bytes that follow, so what it makes of such an entry depends on what it is given with it.
func (f *field) checkEntries(run []byte) error {
	if !f.entries {
		return nil
	}
	for len(run) > 0 {
		_, _, size := next(run)
		entry := payload(run[:size])
		for len(entry) > 0 {
			number, _, size := next(entry)
			if size == 0 || number < 1 || number > 2 {
				return errForm
			}
			entry = entry[size:]
		}
		run = run[size:]
	}
	return nil
}

// plainRun collects neighbouring fields that the generated code of their message decodes. That code merges what it is
// given into what is there, so a message may be given to it in parts.
type plainRun struct {
	to   reflect.Value
	data []byte // the whole message
	from int    // what comes before is decoded
}

func (r *plainRun) until(end int) error {
	if r.from == end {
		return nil
	}
	part := r.data[r.from:end]
	r.from = end
	return r.unmarshal(part)
}

func (r *plainRun) unmarshal(data []byte) error {
	return r.to.Addr().Interface().(unmarshaler).Unmarshal(data)
}

// all decodes the whole message plainly, over whatever has been decoded of it.
func (r *plainRun) all() error {
	r.to.SetZero()
	return r.unmarshal(r.data)
}

// next reads the field at the beginning of b; size is 0 where it is none that can be taken apart.
func next(b []byte) (number, wire, size int) {
	tag, n := uvarint(b)
	if n <= 0 || tag>>3 > highest {
		return 0, 0, 0
	}
	number, wire = int(tag>>3), int(tag&7)
	switch wire {
	case 0:
		_, size = uvarint(b[n:])
		if size <= 0 {
			return 0, 0, 0
		}
	case 1:
		size = 8
	case wireBytes:
		length, head := uvarint(b[n:])
		if head <= 0 || length > uint64(len(b)) {
			return 0, 0, 0
		}
		size = head + int(length)
	case 5:
		size = 4
	default:
		return 0, 0, 0
	}
	if n+size > len(b) {
		return 0, 0, 0
	}
	return number, wire, n + size
}

// payload is the value of a length-delimited field that next has read.
func payload(field []byte) []byte {
	_, n := uvarint(field)
	_, head := uvarint(field[n:])
	return field[n+head:]
}

func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
}
