package sharing

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/tributary-go/tributary/internal/wire"
)

// jsonWalk goes through one JSON object beside the one that stood in its place in the previous
// object.
type jsonWalk struct {
	m      *decoder
	p      *jsonPlan
	at     *place // nil: nothing stood here, and nothing is noted
	dst    reflect.Value
	prev   previous
	left   []span // members of prev that are still to come
	fields []span // of this object, counted from base
	base   int
	seen   uint64
}

// unknownMember is the number of a member without a field.
const unknownMember = -1

// jsonObject decodes the next value, an object, into dst, which is zero or, if that is taken, has
// the value of prev. Its only error is errForm.
func (m *decoder) jsonObject(p *jsonPlan, at *place, dst reflect.Value, prev previous) error {
	w := jsonWalk{m: m, p: p, at: at, dst: dst, prev: prev, base: m.doc.At}
	w.begin()
	if !p.usable {
		return errForm
	}
	err := m.doc.Members('{', '}', func() error {
		if w.same() {
			return nil
		}
		return w.member()
	})
	if err == nil {
		w.end()
	}
	return err
}

// begin takes over the whole struct of the previous object: most fields will be equal, and the
// others are set to zero one by one.
func (w *jsonWalk) begin() {
	if w.at == nil || !w.at.valid || w.prev.data == nil {
		w.dst.SetZero()
	} else {
		w.left = w.at.fields
		if !w.prev.taken {
			w.dst.Set(w.prev.value)
		}
	}
	if w.at != nil {
		w.fields, w.at.valid = w.at.spare[:0], false
	}
}

// end notes where the fields are, for the next object in this place.
func (w *jsonWalk) end() {
	for _, s := range w.left {
		w.zero(s)
	}
	if w.at != nil {
		w.at.fields, w.at.spare, w.at.valid = w.fields, w.at.fields, true
	}
}

// zero drops a field that was taken over and does not come again.
func (w *jsonWalk) zero(s span) {
	if field := w.p.in(w.dst, s.number); field.IsValid() {
		field.SetZero()
	}
}

// repeated passes over a field that is equal in the previous object: its value is in dst already.
func (w *jsonWalk) repeated(slot, size int) {
	w.at.slots[slot].whole.same(w.m.objects)
	w.m.same(size)
}

// counterpart takes a field out of the previous object, with its bytes. A field that dst has taken
// over is set to zero, unless its object is decoded in place; so are the fields before it.
func (w *jsonWalk) counterpart(i int, kind shape) (prev previous) {
	for _, passed := range w.left[:i] {
		w.zero(passed)
	}
	s := w.left[i]
	w.left = w.left[i+1:]
	prev = previous{
		value: w.p.in(w.prev.value, s.number), data: w.prev.data[s.start:s.end],
		taken: kind == message,
	}
	if !prev.taken {
		w.zero(s)
	}
	return prev
}

// same passes over a member that is equal in the previous object.
func (w *jsonWalk) same() bool {
	if len(w.left) == 0 {
		return false
	}
	s, d := w.left[0], &w.m.doc
	d.Peek()
	size := s.end - s.start
	end := d.At + size
	if end >= len(d.Data) || string(d.Data[d.At:end]) != string(w.prev.data[s.start:s.end]) || d.Data[end] != ',' && d.Data[end] != '}' {
		return false
	}
	if s.number != unknownMember {
		if w.seen&(1<<s.number) != 0 {
			return false
		}
		w.seen |= 1 << s.number
		if f := w.p.list[s.number]; f.whole != nil {
			w.repeated(f.number, size)
		}
	}
	w.left = w.left[1:]
	w.note(s.number, d.At, end)
	d.At = end
	return true
}

// note notes the bounds of a member.
func (w *jsonWalk) note(number, start, end int) {
	if w.at != nil {
		w.fields = append(w.fields, span{number, start - w.base, end - w.base})
	}
}

// member decodes the next member.
func (w *jsonWalk) member() error {
	d := &w.m.doc
	d.Peek()
	start := d.At
	name, err := d.Key()
	if err != nil {
		return err
	}
	first, number := d.Peek(), unknownMember
	if f := w.p.fields[string(name)]; f != nil {
		if w.seen&(1<<f.number) != 0 {
			return errForm // encoding/json decodes the second over the first
		}
		w.seen |= 1 << f.number
		number = f.number
		err = w.field(f, first, w.previousMember(f))
	} else if raw := d.Value(); len(raw) > 0 && json.Valid(raw) {
		d.At += len(raw)
	} else {
		err = errForm
	}
	w.note(number, start, d.At)
	return err
}

// previousMember is the same member of the previous object, without its key.
func (w *jsonWalk) previousMember(f *jsonField) (prev previous) {
	for i, s := range w.left {
		if s.number == f.number {
			prev = w.counterpart(i, f.shape)
			prev.data = bracketsOf(prev.data)
			return prev
		}
	}
	return prev
}

// bracketsOf is the object or array of a member; nil if its value is neither.
func bracketsOf(member []byte) []byte {
	value := bytes.TrimLeft(member[wire.StringEnd(member, 0):], ": \n\r\t")
	if value[0] != '{' && value[0] != '[' {
		return nil
	}
	return value
}

// field decodes the next value, which begins with first, into its field.
func (w *jsonWalk) field(f *jsonField, first byte, prev previous) error {
	m, into := w.m, f.in(w.dst)
	if f.dropped {
		raw := m.doc.Value()
		if m.doc.At += len(raw); len(raw) == 0 {
			return errForm
		}
		return nil
	}
	if first == 'n' || f.shape == bare {
		return w.plain(f, into)
	}
	h := m.whole(w.at, f.number, f.whole)
	k, size, found := m.seekJSON(f.whole, h, into)
	if found {
		w.at.forget(f.number)
		return nil
	}
	err := w.decode(f, first, into, prev)
	if err == nil && size > 0 {
		m.keep(f.whole, h, k, size, into)
	}
	return err
}

// seekJSON looks for the next value, and passes over it if it is found. Otherwise size is that of a
// value to keep; zero if it is not worth it, or malformed.
func (m *decoder) seekJSON(s *site, h *habit, into reflect.Value) (k key, size int, found bool) {
	if !h.wanted() {
		return k, 0, false
	}
	raw := m.doc.Value()
	if len(raw) == 0 || len(raw) > m.limits.part {
		return k, 0, false
	}
	k = m.keyOf(raw)
	if found, _ = m.find(s, h, k, len(raw), refTo(into.Addr())); found {
		m.doc.At += len(raw)
	}
	return k, len(raw), found
}

func (w *jsonWalk) decode(f *jsonField, first byte, into reflect.Value, prev previous) error {
	m := w.m
	nested := f.nested.Load()
	if f.shape > leaf && nested == nil {
		nested = m.jsonPlanOf(f.elem)
		f.nested.Store(nested)
	}
	switch {
	case f.shape == message && first == '{':
		return m.jsonObject(nested, w.at.below(f.number, 0, len(nested.fields)), into, prev)
	case f.shape == pointer && first == '{':
		if prev.data != nil && prev.value.IsNil() {
			prev.data = nil
		}
		if prev.data != nil {
			prev.value = prev.value.Elem()
		}
		into.Set(reflect.New(f.elem))
		return m.jsonObject(nested, w.at.below(f.number, 0, len(nested.fields)), into.Elem(), prev)
	case f.shape == messages && first == '[':
		return w.elements(f, into, prev)
	}
	return w.plain(f, into)
}

// elements decodes an array of objects.
func (w *jsonWalk) elements(f *jsonField, into reflect.Value, prev previous) error {
	d := &w.m.doc
	var last, noted []span
	if w.at != nil {
		s := &w.at.slots[f.number]
		if prev.data != nil {
			last = s.elements
		}
		noted, s.elements = s.spare[:0], nil
	}
	guess := 0
	base, i := d.At, 0
	err := d.Members('[', ']', func() error {
		d.Peek()
		start := d.At
		switch i {
		case 0:
			into.Grow(max(1, len(last)))
			guess = into.Cap()
		case into.Cap():
			into.Grow(1)
		}
		into.SetLen(i + 1)
		elem, below := into.Index(i), previous{}
		if i < len(last) && i < prev.value.Len() {
			below = previous{value: prev.value.Index(i), data: prev.data[last[i].start:last[i].end]}
		}
		err := w.element(f, i, elem, below)
		if i < maxBounds {
			noted = append(noted, span{0, start - base, d.At - base})
		}
		i++
		return err
	})
	if err != nil {
		return err
	}
	if w.at != nil {
		s := &w.at.slots[f.number]
		s.elements, s.spare = noted, last
	}
	if i < len(last) || into.Cap() > guess || i == 0 { // which is no nil
		exact := reflect.MakeSlice(into.Type(), i, i)
		reflect.Copy(exact, into)
		into.Set(exact)
	}
	trim(into)
	return nil
}

func (w *jsonWalk) element(f *jsonField, i int, elem reflect.Value, prev previous) error {
	m, d, nested := w.m, &w.m.doc, f.nested.Load()
	below := w.at.below(f.number, i, len(nested.fields))
	h := m.each(below, f.each)
	if end := d.At + len(prev.data); prev.data != nil && end < len(d.Data) && string(d.Data[d.At:end]) == string(prev.data) {
		elem.Set(prev.value)
		h.same(m.objects)
		m.same(len(prev.data))
		d.At = end
		return nil
	}
	if d.Peek() != '{' {
		return errForm
	}
	k, size, found := m.seekJSON(f.each, h, elem)
	if found {
		if below != nil {
			below.valid = false
		}
		return nil
	}
	err := m.jsonObject(nested, below, elem, prev)
	if err == nil && size > 0 {
		m.keep(f.each, h, k, size, elem)
	}
	return err
}

// in is the field in its struct.
func (f *jsonField) in(of reflect.Value) reflect.Value {
	if len(f.index) == 1 {
		return of.Field(f.index[0])
	}
	return of.FieldByIndex(f.index)
}

func (p *jsonPlan) in(of reflect.Value, number int) (field reflect.Value) {
	if number == unknownMember {
		return field
	}
	return p.list[number].in(of)
}
