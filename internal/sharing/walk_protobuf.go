package sharing

import (
	"reflect"

	"github.com/tributary-go/tributary/internal/wire"
)

// Unmarshal decodes a protobuf message into obj, a pointer to a zero struct with generated code.
// The caller may reuse data afterwards. The error is the generated code's.
func (m *Memo) Unmarshal(data []byte, obj unmarshaler) error {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return obj.Unmarshal(data)
	}
	d := m.take(len(data))
	err := d.object(v, obj, data, before{})
	d.giveBack()
	return err
}

// givesUp reports whether an object is left to the generated code.
func (d *decoder) givesUp(h *habit, data []byte) bool {
	return !d.drop && len(data) <= maxGivenUp && !h.wanted()
}

// maxGivenUp is the largest object that is left to the generated code. Most parts of larger ones
// are too large to be looked up, and the keys of their maps are worth sharing.
const maxGivenUp = 64 << 10

// object decodes a whole object, beside its last state if there is one. It leaves the object to the
// generated code while interning finds too little to be worth its price.
func (d *decoder) object(v reflect.Value, obj unmarshaler, data []byte, last before) error {
	r := d.rootOf(v.Type().Elem())
	h := &r.objects
	if !last.isNil() {
		h = &r.changes
	}
	if d.givesUp(h, data) {
		d.reserve(r.node, refTo(v), data)
		return obj.Unmarshal(data)
	}
	ok := d.walk(r.node, refTo(v), data, last, 0)
	if len(data) <= maxGivenUp {
		if h.looked(100*int(d.counts.shared) >= d.limits.share*len(data)); h.skip > 0 {
			d.forgetRecent()
		}
	}
	if ok {
		return nil
	}
	d.trace.now = d.trace.now[:0]
	v.Elem().SetZero()
	return obj.Unmarshal(data)
}

// reserve makes the lists of a message, and of the messages in its struct, as long as generated
// code will need them: it would grow each list step by step.
func (d *decoder) reserve(n *node, dst ref, b []byte) {
	p, number, count := n.plan, 0, 0
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
		case f.isRun:
			if i, count = f.run(b, f.start, i); i == 0 {
				return
			}
			if f.kind == repeated && count > 1 {
				dst.field(f.offset).value(f.typ).Set(reflect.MakeSlice(f.typ, 0, count))
			}
		}
	}
}

// message decodes a message below an object into dst, which is zero. It is false if the generated
// code refuses it.
func (d *decoder) message(n *node, dst ref, b []byte, last before, index int) bool {
	notes := len(d.trace.now)
	if d.walk(n, dst, b, last, index) {
		return true
	}
	d.trace.now = d.trace.now[:notes]
	dst.value(n.plan.typ).SetZero()
	if dst.message(n.plan.typ).Unmarshal(b) != nil {
		return false
	}
	for _, offset := range n.plan.slices {
		dst.field(offset).trimSlice()
	}
	return true
}

// walk decodes a message of the usual form into dst, which is zero. It is false if the form is
// another; then dst holds anything. Last is the message that stands here in the last state of the
// object, nil if there is none. The index tells the elements of lists apart.
//
// It is one long function because a call for each field makes a change 3 to 8 % slower.
func (d *decoder) walk(n *node, dst ref, b []byte, last before, index int) bool {
	p, number := n.plan, 0
	if len(p.fields) == 0 && len(b) > 0 {
		return false
	}
	var same adjacent
	compares := d.compares
	broken := 0 // up to this field, a run that was noted has changed: its parts may be equal
	for i := 0; i < len(b); {
		f, end := p.next(b, i, number)
		if end == 0 {
			return false
		}
		i, number = end, f.number
		if f.field == nil {
			continue // generated code skips an unknown field
		}
		if last.at != 0 {
			end, to := d.takeNoted(p, dst, last, b, f, &same)
			if end > 0 {
				i, number = end, to
				continue
			}
			broken = max(broken, to)
			d.compares = compares || f.number <= broken
		}
		notes := len(d.trace.now)
		to := dst.field(f.offset)
		switch f.kind {
		case text:
			d.text(n, f.field, to, last, b[f.from:i], index)
		case boolean:
			*to.bool() = f.value != 0
		case number32:
			*to.int32() = int32(f.value)
		case number64:
			*to.int64() = int64(f.value)
		case instant, microInstant:
			t, ok := instantOf(b[f.from:i], f.kind == microInstant)
			if !ok {
				return false
			}
			*to.time() = t
		case octets:
			made := make([]byte, i-f.from)
			copy(made, b[f.from:i])
			*to.bytes() = made
		case inline, pointed:
			if !d.part(n, f.field, dst, to, last, b[f.from:i], 1, index) {
				return false
			}
		case booleanTo, number32To, number64To, textTo, instantTo, microInstantTo:
			if !d.pointer(n, f.field, to, last, b[f.from:i], f.value) {
				return false
			}
		default:
			count := 1
			if f.isRun {
				if i, count = f.run(b, f.start, i); i == 0 {
					return false
				}
			}
			switch {
			case f.kind == skipped:
			case f.slot >= 0:
				if !d.part(n, f.field, dst, to, last, b[f.start:i], count, index) {
					return false
				}
			case dst.message(p.typ).Unmarshal(b[f.start:i]) != nil:
				return false
			}
		}
		if last.at == 0 || last.isNil() {
			continue
		}
		if f.kind == skipped || !to.identical(last.field(f.offset), f.typ.Size()) {
			d.noteAdjacent(&same, last, b, notes)
			continue
		}
		if same.from == 0 {
			same = adjacent{from: f.number, start: f.start, notes: notes}
		}
		same.to, same.end = f.number, i
	}
	d.compares = compares
	d.noteAdjacent(&same, last, b, len(d.trace.now))
	return true
}

// pointer decodes a pointer to a scalar. It is the pointer of the last state, or the last one that
// was decoded here, if the value is the same.
func (d *decoder) pointer(n *node, f *field, to ref, own before, b []byte, value uint64) bool {
	if !own.isNil() {
		if was := own.field(f.offset).target(); f.points(was, b, value) {
			to.point(was)
			return true
		}
	}
	last := &n.slots[f.slot].last
	if f.points(*last, b, value) {
		to.point(*last)
		return true
	}
	switch f.kind {
	case booleanTo:
		*last = refOf(ptr(value != 0))
	case number32To:
		*last = refOf(ptr(int32(value)))
	case number64To:
		*last = refOf(ptr(int64(value)))
	case textTo:
		*last = refOf(ptr(string(b)))
	default:
		t, ok := instantOf(b, f.kind == microInstantTo)
		if !ok {
			return false
		}
		*last = refOf(&t)
	}
	to.point(*last)
	return true
}

func ptr[T any](value T) *T { return &value }

// text decodes a string. The last state of the object is asked first: its texts are stored as they
// come.
func (d *decoder) text(n *node, f *field, to ref, last before, b []byte, index int) {
	if !last.isNil() {
		if last := last.field(f.offset).text(); *last == string(b) {
			*to.text() = *last
			d.same(len(b))
			return
		}
	}
	s := &n.slots[f.slot].whole
	if s.skip > 0 {
		s.skip--
		*to.text() = string(b)
		return
	}
	sought, found := d.seek(s, f.whole, to, b, 1, index)
	if !found {
		*to.text() = string(b)
		d.keepPart(s, f.whole, to, b, index, sought)
	}
}

// part decodes a message or the run of a repeated field, which may be shared as a whole.
func (d *decoder) part(n *node, f *field, dst, to ref, last before, b []byte, count, index int) bool {
	last = last.part(f)
	switch {
	case f.kind == generated:
		last = before{}
	case !last.isNil() && f.isThere(last.ref):
		return d.compared(n, f, dst, to, last, b, count, index)
	case f.kind != inline:
		last = before{}
	}
	return d.sought(n, f, dst, to, last, b, count, index)
}

// sought decodes a part that may be equal in another object.
func (d *decoder) sought(n *node, f *field, dst, to ref, last before, b []byte, count, index int) bool {
	s := &n.slots[f.slot].whole
	if s.resting(f.least, len(b)) {
		s.skip = max(0, s.skip-1)
		return d.value(n, f, dst, to, last, b, count, index)
	}
	sought, found := d.seek(s, f.whole, to, b, f.least, index)
	if found {
		return true
	}
	if !d.value(n, f, dst, to, last, b, count, index) {
		return false
	}
	d.keepPart(s, f.whole, to, b, index, sought)
	return true
}

// value decodes a part that was not found. Last is nil, or has such a part.
func (d *decoder) value(n *node, f *field, dst, to ref, last before, b []byte, count, index int) bool {
	switch f.kind {
	case inline:
		below := d.below(n, f)
		return below != nil && d.message(below, to, b, last.message(last.ref), index)
	case pointed:
		below := d.below(n, f)
		if below == nil {
			return false
		}
		made := newOf(f.elem)
		to.point(made)
		if last.isNil() {
			return d.message(below, made, b, last, index)
		}
		return d.message(below, made, b, last.message(last.target()), index)
	case repeated:
		below := d.below(n, f)
		return below != nil && d.elements(n, f, below, to, b, count, index)
	case texts:
		return d.texts(f, to, b, count)
	case textMap:
		var was map[string]string
		if !last.isNil() {
			was = *last.textMap()
		}
		return d.textMap(f, to, was, b, count)
	}
	return d.generated(n.plan, f, dst, to, b)
}

// elements decodes a run of messages.
func (d *decoder) elements(n *node, f *field, below *node, to ref, run []byte, count, index int) bool {
	size := below.plan.typ.Size()
	first := below.array(count)
	s := &n.slots[f.slot].each
	for i := range count {
		var b []byte
		b, run = f.occurrence(run)
		if !d.element(f, s, below, first.element(i, size), before{}, b, 5*index+i) {
			return false
		}
	}
	to.setSlice(first, count)
	return true
}

// element decodes one message of a run.
func (d *decoder) element(f *field, s *shareable, below *node, to ref, last before, b []byte, index int) bool {
	if s.resting(worthMessage, len(b)) {
		s.skip = max(0, s.skip-1)
		return d.message(below, to, b, last, index)
	}
	sought, found := d.seek(s, f.each, to, b, worthMessage, index)
	if found {
		return true
	}
	if !d.message(below, to, b, last, index) {
		return false
	}
	d.keepPart(s, f.each, to, b, index, sought)
	return true
}

func (d *decoder) texts(f *field, to ref, run []byte, count int) bool {
	made := make([]string, count)
	for i := range made {
		var b []byte
		b, run = f.occurrence(run)
		made[i] = string(b)
	}
	*to.texts() = made
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
	*to.textMap() = made
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
