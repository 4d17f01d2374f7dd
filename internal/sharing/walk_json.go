package sharing

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// jsonWalk goes through one object beside the one that stood in its place before.
type jsonWalk struct {
	m       *decoder
	p       *jsonPlan
	at      *place // nil: nothing stood here, and nothing is noted
	dst     reflect.Value
	was     previous
	old     []span // of the members of was that are still to come
	members []span // of this object, counted from base; number is unknownMember where there is no field
	base    int
	seen    uint64
}

const unknownMember = -1

// jsonObject decodes the next value, an object, into dst, which is zero or, where that is taken, what was.value is. Its only
// error is errForm.
func (m *decoder) jsonObject(p *jsonPlan, at *place, dst reflect.Value, was previous) error {
	w := jsonWalk{m: m, p: p, at: at, dst: dst, was: was, base: m.doc.at}
	w.begin()
	if !p.usable {
		return errForm
	}
	err := m.doc.members('{', '}', func() error {
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

func (w *jsonWalk) begin() {
	if w.at == nil || !w.at.valid || w.was.data == nil {
		w.dst.SetZero()
	} else {
		w.old = w.at.fields
		if !w.was.taken {
			w.dst.Set(w.was.value)
		}
	}
	if w.at != nil {
		w.members = w.at.spare[:0]
		w.at.valid = false
	}
}

func (w *jsonWalk) end() {
	for _, o := range w.old {
		w.zero(o)
	}
	if w.at != nil {
		w.at.fields, w.at.spare, w.at.valid = w.members, w.at.fields, true
	}
}

func (w *jsonWalk) zero(o span) {
	if o.number != unknownMember {
		w.p.list[o.number].in(w.dst).SetZero()
	}
}

// same passes over a member that stood here in the object before too: its value is in dst already.
func (w *jsonWalk) same() bool {
	if len(w.old) == 0 {
		return false
	}
	o, d := w.old[0], &w.m.doc
	d.peek()
	end := d.at + o.end - o.start
	if end >= len(d.data) || string(d.data[d.at:end]) != string(w.was.data[o.start:o.end]) || d.data[end] != ',' && d.data[end] != '}' {
		return false
	}
	if o.number != unknownMember {
		if w.seen&(1<<o.number) != 0 {
			return false
		}
		w.seen |= 1 << o.number
		if f := w.p.list[o.number]; f.whole != nil {
			w.at.slots[o.number].whole.same()
			w.m.same(o.end - o.start)
		}
	}
	w.old = w.old[1:]
	w.note(o.number, d.at, end)
	d.at = end
	return true
}

func (w *jsonWalk) note(number, start, end int) {
	if w.at != nil {
		w.members = append(w.members, span{number, start - w.base, end - w.base})
	}
}

// member decodes the next member.
func (w *jsonWalk) member() error {
	d := &w.m.doc
	d.peek()
	start := d.at
	name, err := d.key()
	if err != nil {
		return err
	}
	first, number := d.peek(), unknownMember
	if f := w.p.fields[string(name)]; f != nil {
		if w.seen&(1<<f.number) != 0 {
			return errForm // encoding/json decodes the second over the first
		}
		w.seen |= 1 << f.number
		number = f.number
		err = w.field(f, first, w.counterpart(f))
	} else if raw := d.value(); len(raw) > 0 && json.Valid(raw) {
		d.at += len(raw)
	} else {
		err = errForm
	}
	w.note(number, start, d.at)
	return err
}

// counterpart is the same member of the object before, with its key. What dst has taken over of it is set to zero, and so is
// what stood before it there.
func (w *jsonWalk) counterpart(f *jsonField) (was previous) {
	for i, o := range w.old {
		if o.number != f.number {
			continue
		}
		for _, passed := range w.old[:i] {
			w.zero(passed)
		}
		w.old = w.old[i+1:]
		was = previous{value: f.in(w.was.value), data: bracketsOf(w.was.data[o.start:o.end])}
		if was.taken = f.shape == message; !was.taken {
			w.zero(o)
		}
		break
	}
	return was
}

// bracketsOf is the object or array of a member; nil where its value is neither.
func bracketsOf(member []byte) []byte {
	value := bytes.TrimLeft(member[stringEnd(member, 0):], ": \n\r\t")
	if value[0] != '{' && value[0] != '[' {
		return nil
	}
	return value
}

// field decodes the next value, which begins with first, into its field.
func (w *jsonWalk) field(f *jsonField, first byte, was previous) error {
	m, into := w.m, f.in(w.dst)
	if f.dropped {
		raw := m.doc.value()
		if m.doc.at += len(raw); len(raw) == 0 {
			return errForm
		}
		return nil
	}
	if first == 'n' || f.shape == scalar {
		return w.plain(f, into)
	}
	h := m.whole(w.at, f.number, f.whole)
	if !h.wanted() {
		return w.decode(f, first, into, was)
	}
	raw := m.doc.value()
	if len(raw) == 0 {
		return errForm
	}
	if len(raw) > maxPart {
		return w.decode(f, first, into, was)
	}
	k := m.keyOf(raw)
	if m.find(f.whole, h, k, len(raw), into) {
		w.at.forget(f.number)
		m.doc.at += len(raw)
		return nil
	}
	if err := w.decode(f, first, into, was); err != nil {
		return err
	}
	m.keep(f.whole, h, k, len(raw), into)
	return nil
}

func (w *jsonWalk) decode(f *jsonField, first byte, into reflect.Value, was previous) error {
	m := w.m
	nested := f.nested.Load()
	if f.shape > leaf && nested == nil {
		nested = m.jsonPlanOf(f.elem)
		f.nested.Store(nested)
	}
	switch {
	case f.shape == message && first == '{':
		return m.jsonObject(nested, w.at.below(f.number, 0, len(nested.fields)), into, was)
	case f.shape == pointer && first == '{':
		if was.data != nil && was.value.IsNil() {
			was.data = nil
		}
		if was.data != nil {
			was.value = was.value.Elem()
		}
		into.Set(reflect.New(f.elem))
		return m.jsonObject(nested, w.at.below(f.number, 0, len(nested.fields)), into.Elem(), was)
	case f.shape == messages && first == '[':
		return w.elements(f, into, was)
	}
	return w.plain(f, into)
}

// elements decodes an array of objects.
func (w *jsonWalk) elements(f *jsonField, into reflect.Value, was previous) error {
	d := &w.m.doc
	var old, noted []span
	if w.at != nil {
		s := &w.at.slots[f.number]
		if was.data != nil {
			old = s.elements
		}
		noted, s.elements = s.spare[:0], nil
	}
	guess := 0
	base, i := d.at, 0
	err := d.members('[', ']', func() error {
		d.peek()
		start := d.at
		switch i {
		case 0:
			into.Grow(max(1, len(old)))
			guess = into.Cap()
		case into.Cap():
			into.Grow(1)
		}
		into.SetLen(i + 1)
		elem, before := into.Index(i), previous{}
		if i < len(old) && i < was.value.Len() {
			before = previous{value: was.value.Index(i), data: was.data[old[i].start:old[i].end]}
		}
		err := w.element(f, i, elem, before)
		if i < maxNoted {
			noted = append(noted, span{0, start - base, d.at - base})
		}
		i++
		return err
	})
	if err != nil {
		return err
	}
	if w.at != nil {
		s := &w.at.slots[f.number]
		s.elements, s.spare = noted, old
	}
	if i < len(old) || into.Cap() > guess || i == 0 { // which is no nil
		exact := reflect.MakeSlice(into.Type(), i, i)
		reflect.Copy(exact, into)
		into.Set(exact)
	}
	trim(into)
	return nil
}

func (w *jsonWalk) element(f *jsonField, i int, elem reflect.Value, was previous) error {
	m, d, nested := w.m, &w.m.doc, f.nested.Load()
	below := w.at.below(f.number, i, len(nested.fields))
	h := m.each(below, f.each)
	if end := d.at + len(was.data); was.data != nil && end < len(d.data) && string(d.data[d.at:end]) == string(was.data) {
		elem.Set(was.value)
		h.same()
		m.same(len(was.data))
		d.at = end
		return nil
	}
	if d.peek() != '{' {
		return errForm
	}
	if !h.wanted() {
		return m.jsonObject(nested, below, elem, was)
	}
	raw := d.value()
	if len(raw) == 0 {
		return errForm
	}
	if len(raw) > maxPart {
		return m.jsonObject(nested, below, elem, was)
	}
	k := m.keyOf(raw)
	if m.find(f.each, h, k, len(raw), elem) {
		if below != nil {
			below.valid = false
		}
		d.at += len(raw)
		return nil
	}
	if err := m.jsonObject(nested, below, elem, was); err != nil {
		return err
	}
	m.keep(f.each, h, k, len(raw), elem)
	return nil
}

// in is the field of a struct.
func (f *jsonField) in(of reflect.Value) reflect.Value {
	if len(f.index) == 1 {
		return of.Field(f.index[0])
	}
	return of.FieldByIndex(f.index)
}
