package sharing

import (
	"reflect"

	"github.com/tributary-go/tributary/internal/wire"
)

// Unmarshal decodes a protobuf message into obj, a pointer to a zero struct with generated code.
// The caller may reuse data afterwards. The error is the generated code's.
func (m *Memo) Unmarshal(data []byte, obj unmarshaler) error { return m.unmarshal(data, obj, true) }

func (m *Memo) unmarshal(data []byte, obj unmarshaler, added bool) error {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return obj.Unmarshal(data)
	}
	d := m.take(len(data), added)
	if d == nil {
		return obj.Unmarshal(data)
	}
	err := d.object(v, obj, data, before{})
	m.giveBack(d)
	return err
}

// object decodes a whole object, beside its last state if there is one. It leaves the object to the
// generated code while interning finds too little to be worth its price. A large object is always
// taken apart: most of its parts are too large to be looked up, and the keys of its maps are worth
// sharing.
func (d *decoder) object(v reflect.Value, obj unmarshaler, data []byte, last before) error {
	r := d.roots[v.Type().Elem()]
	if r == nil {
		r = d.newRoot(v.Type().Elem())
	}
	h := &r.objects
	if last.p != nil {
		h = &r.changes
	}
	small := len(data) <= maxGivenUp
	if small && !d.drop && !h.wanted() {
		d.reserve(r.node, refTo(v), data)
		return obj.Unmarshal(data)
	}
	ok := d.walk(r.node, refTo(v), data, last, 0)
	if small {
		if h.looked(100*int(d.counts.shared) >= d.limits.share*len(data), d.objects); h.skip > 0 {
			d.forgetRecent()
		}
	}
	if ok {
		return nil
	}
	v.Elem().SetZero()
	return obj.Unmarshal(data)
}

// reserve makes the lists of a message, and of the messages in its struct, as long as generated
// code will need them: it would grow each list step by step.
func (d *decoder) reserve(n *node, dst ref, b []byte) {
	p, number := n.plan, 0
	for i := 0; i < len(b) && len(p.fields) > 0; {
		f, end := p.next(b, i, number)
		if end == 0 {
			return
		}
		i, number = end, f.number
		switch {
		case f.field == nil:
		case f.kind == inline:
			if below := d.below(n, f.field); below != nil {
				d.reserve(below, dst.field(f.offset), b[f.from:i])
			}
		case f.kind == repeated && f.count > 1:
			dst.field(f.offset).value(f.typ).Set(reflect.MakeSlice(f.typ, 0, f.count))
		}
	}
}

// walk decodes a message into dst, which is zero. Last is the message that stands here in the last
// state of the object, nil if there is none. The index tells the elements of lists apart. It is
// false if the generated code refuses the message.
func (d *decoder) walk(n *node, dst ref, b []byte, last before, index int) bool {
	p, number, noted := n.plan, 0, len(d.notes.now)
	if len(p.fields) == 0 && len(b) > 0 {
		return d.plain(n, dst, b, noted)
	}
	same := equalRun{last: last, b: b}
	for i := 0; i < len(b); {
		f, end := p.next(b, i, number)
		if end == 0 {
			return d.plain(n, dst, b, noted)
		}
		if f.field != nil && last.at != 0 {
			if end, to := same.take(d, p, dst, f); end > 0 {
				i, number = end, to
				continue
			}
			last.all = same.last.all || f.number <= same.broken
		}
		i, number = end, f.number
		if f.field == nil {
			continue // generated code skips an unknown field
		}
		later, to, ok := len(d.notes.now), dst.field(f.offset), true
		switch {
		case f.kind == text:
			d.text(n, f.field, to, last, b[f.from:i], index)
		case f.kind == skipped:
		case f.kind == plain:
			ok = f.scalar.set(to, b[f.from:i], f.value)
		case f.kind == pointerTo:
			ok = d.pointer(n, f.field, to, last, b[f.from:i], f.value)
		case f.slot < 0:
			ok = d.generated(p, f.field, dst, to, b[f.from:i])
		default:
			ok = d.part(n, f.field, dst, to, last, b[f.from:i], f.count, index)
		}
		if !ok {
			return d.plain(n, dst, b, noted)
		}
		if last.at != 0 && last.p != nil {
			same.extend(d, f, to, i, later)
		}
	}
	same.end(d, len(d.notes.now))
	return true
}

// plain leaves a message to the generated code, since its form is not the usual one. Its notes,
// from an index on, mean nothing.
func (d *decoder) plain(n *node, dst ref, b []byte, notes int) bool {
	d.notes.now = d.notes.now[:notes]
	dst.value(n.plan.typ).SetZero()
	if dst.message(n.plan.typ).Unmarshal(b) != nil {
		return false
	}
	for _, offset := range n.plan.slices {
		dst.field(offset).trimSlice()
	}
	return true
}

// pointer decodes a pointer to a scalar. It is the pointer of the last state, or the last one that
// was decoded here, if the value is the same.
func (d *decoder) pointer(n *node, f *field, to ref, own before, b []byte, varint uint64) bool {
	last := &n.slots[f.slot].last
	if own.p != nil {
		if was := *as[ref](own.field(f.offset)); was.p != nil && f.scalar.is(was, b, varint) {
			*as[ref](to) = was
			return true
		}
	}
	if last.p == nil || !f.scalar.is(*last, b, varint) {
		made := refTo(reflect.New(f.elem))
		if !f.scalar.set(made, b, varint) {
			return false
		}
		*last = made
	}
	*as[ref](to) = *last
	return true
}

// text decodes a string. The last state of the object is asked first: its texts are stored as they
// come.
func (d *decoder) text(n *node, f *field, to ref, last before, b []byte, index int) {
	if last.p != nil {
		if last := as[string](last.field(f.offset)); *last == string(b) {
			*as[string](to) = *last
			d.same(len(b))
			return
		}
	}
	s := &n.slots[f.slot].whole
	if s.skip > 0 {
		s.skip--
		*as[string](to) = string(b)
		return
	}
	of := f.whole.of(d.common, f.typ)
	sought, found := d.seek(s, of, to, b, 1, index)
	if !found {
		*as[string](to) = string(b)
		d.keepPart(s, of, to, b, index, sought)
	}
}

// sought decodes a part that may be equal in another object.
func (d *decoder) sought(n *node, f *field, dst, to ref, last before, b []byte, count, index int) bool {
	s, of := &n.slots[f.slot].whole, f.whole.of(d.common, f.typ)
	sought, found := d.seek(s, of, to, b, f.least, index)
	if found {
		return true
	}
	if !d.value(n, f, dst, to, last, b, count, index) {
		return false
	}
	d.keepPart(s, of, to, b, index, sought)
	return true
}

// value decodes a part that was not found. Last is nil, or has such a part.
func (d *decoder) value(n *node, f *field, dst, to ref, last before, b []byte, count, index int) bool {
	switch f.kind {
	case inline:
		below := d.below(n, f)
		return below != nil && d.walk(below, to, b, last.message(last.ref), index)
	case pointed:
		below := d.below(n, f)
		if below == nil {
			return false
		}
		made := refTo(reflect.New(f.elem))
		*as[ref](to) = made
		if last.p != nil {
			last = last.message(*as[ref](last.ref))
		}
		return d.walk(below, made, b, last, index)
	case repeated:
		below := d.below(n, f)
		return below != nil && d.elements(n, f, below, to, b, count, index)
	case texts:
		return d.texts(f, to, b, count)
	case textMap:
		var was map[string]string
		if last.p != nil {
			was = *as[map[string]string](last.ref)
		}
		return d.textMap(f, to, was, b, count)
	}
	return d.generated(n.plan, f, dst, to, b)
}

// elements decodes a run of messages.
func (d *decoder) elements(n *node, f *field, below *node, to ref, run []byte, count, index int) bool {
	size := below.plan.typ.Size()
	first := below.array(count)
	s := n.slots[f.slot].each
	for i := range count {
		var b []byte
		b, run = f.occurrence(run)
		if !d.element(f, s, below, first.field(uintptr(i)*size), before{}, b, 5*index+i) {
			return false
		}
	}
	to.setSlice(first, count)
	return true
}

// element decodes one message of a run.
func (d *decoder) element(f *field, s *shareable, below *node, to ref, last before, b []byte, index int) bool {
	of := f.each.of(d.common, f.elem)
	sought, found := d.seek(s, of, to, b, worthMessage, index)
	if found {
		return true
	}
	if !d.walk(below, to, b, last, index) {
		return false
	}
	d.keepPart(s, of, to, b, index, sought)
	return true
}

func (d *decoder) texts(f *field, to ref, run []byte, count int) bool {
	made := make([]string, count)
	for i := range made {
		var b []byte
		b, run = f.occurrence(run)
		made[i] = string(b)
	}
	*as[[]string](to) = made
	return true
}

// textMap decodes a map of strings. Its keys are shared with all others, its values with the last
// state of the object.
func (d *decoder) textMap(f *field, to ref, last map[string]string, run []byte, count int) bool {
	made := make(map[string]string, count)
	for range count {
		var b []byte
		b, run = f.occurrence(run)
		key, value, ok := entryOf(b)
		if !ok {
			return false
		}
		text, known := last[string(key)]
		if !known || text != string(value) {
			text = string(value)
		}
		made[d.name(key)] = text
	}
	*as[map[string]string](to) = made
	return true
}

// generated gives a run to the generated code of its message, which merges it into the struct.
// Generated code lets the key or value of a malformed entry reach past its end, into the bytes that
// follow, so such a run is refused.
func (d *decoder) generated(p *plan, f *field, dst, to ref, run []byte) bool {
	if f.entries {
		for rest := run; len(rest) > 0; {
			_, from, end := payloadOf(rest, f.head, wire.Bytes)
			if _, _, ok := entryOf(rest[from:end]); !ok {
				return false
			}
			rest = rest[end:]
		}
	}
	if dst.message(p.typ).Unmarshal(run) != nil {
		return false
	}
	if f.typ.Kind() == reflect.Slice {
		to.trimSlice()
	}
	return true
}
