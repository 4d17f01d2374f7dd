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
	p := m.planOf(v.Type().Elem())
	d := m.take(len(data))
	err := d.object(p, v.Elem(), data, traced{})
	d.giveBack()
	return err
}

// object decodes a whole object.
func (m *decoder) object(p *plan, into reflect.Value, data []byte, own traced) error {
	prev := m.previousOf(p, into.Type(), p.slots)
	err := m.message(p, prev.root, into, data, prev.previous(), own)
	prev.set(into, data, err == nil)
	return err
}

// message decodes one message into dst, which is zero or, if that is taken, has the value of prev.
func (m *decoder) message(p *plan, at *place, dst reflect.Value, data []byte, prev previous, own traced) error {
	w := walk{
		beside: beside{m: m, layout: p, at: at, dst: dst, prev: prev},
		p:      p, own: own, plain: plainRun{to: dst, data: data},
	}
	parts := own.mark()
	w.begin()
	for here := 0; here < len(data); {
		end, err := w.same(here)
		if err == nil && end < len(data) {
			end, err = w.run(end)
		}
		switch {
		case err == errForm:
			own.forget(parts)
			return w.plain.all()
		case err != nil:
			return err
		}
		here = end
	}
	if err := w.plain.until(len(data)); err != nil {
		return err
	}
	w.end()
	w.trimSlices()
	return nil
}

// walk goes through one message of protobuf.
type walk struct {
	beside
	p     *plan
	own   traced
	last  int // number of the field before
	plain plainRun
}

// trimSlices takes the spare capacity of slices that generated code has made.
func (w *walk) trimSlices() {
	if w.plain.used {
		for _, i := range w.p.slices {
			trim(w.dst.Field(i))
		}
	}
}

// same passes over the runs that are equal in the previous message.
func (w *walk) same(start int) (end int, err error) {
	here, onlyScalars := start, true
	for len(w.left) > 0 {
		f := w.repeats(w.left[0], here)
		if f == nil {
			break
		}
		s := w.left[0]
		size := s.end - s.start
		w.left = w.left[1:]
		w.noteRun(s.number, here, here+size)
		here += size
		if f.shape != scalar {
			onlyScalars = false
			w.repeated(f.slot, size)
		}
	}
	if here == start || onlyScalars && w.plain.from < start {
		return here, nil // it is cheaper to decode scalars again than to end a plain run
	}
	err = w.plain.until(start)
	w.plain.from = here
	return here, err
}

// repeats returns the field of the run s if the same run stands here; nil otherwise.
func (w *walk) repeats(s span, here int) *field {
	data, end := w.plain.data, here+s.end-s.start
	if end > len(data) || string(data[here:end]) != string(w.prev.data[s.start:s.end]) || s.number <= w.last {
		return nil
	}
	f := w.p.fields[s.number]
	if !f.single && end < len(data) {
		if again, _, _, _ := wire.Field(data[end:]); again == s.number {
			return nil // the run goes on
		}
	}
	return f
}

// run decodes the run of one field, which begins at start, and returns its end.
func (w *walk) run(start int) (end int, err error) {
	data := w.plain.data
	number, format, _, size := wire.Field(data[start:])
	if size == 0 || number <= w.last || number >= len(w.p.fields) || !w.p.fields[number].takes(format) {
		return 0, errForm
	}
	f := w.p.fields[number]
	end, count := start+size, 1
	for !f.single && end < len(data) {
		again, format, _, size := wire.Field(data[end:])
		if size == 0 || again != number {
			break
		}
		if !f.takes(format) {
			return 0, errForm
		}
		end += size
		count++
	}
	prev := w.previousRun(f, number)
	w.noteRun(number, start, end)
	return end, w.field(f, number, start, end, count, prev)
}

func (w *walk) noteRun(number, start, end int) {
	w.last = number
	w.note(number, start, end)
}

// previousRun is the same field of the previous message.
func (w *walk) previousRun(f *field, number int) (prev previous) {
	i := 0
	for i < len(w.left) && w.left[i].number < number {
		w.zero(w.left[i])
		i++
	}
	w.left = w.left[i:]
	if len(w.left) == 0 || w.left[0].number > number {
		return prev
	}
	return w.counterpart(0, f.shape)
}

// takes reports whether this code knows a field of that wire type. The generated code judges the
// fields that are left to it.
func (f *field) takes(format int) bool {
	return f != nil && (format == wire.Bytes || f.shape <= leaf && !f.strings)
}

// field decodes the run of one field, data[start:end], or leaves it to the plain run.
func (w *walk) field(f *field, number, start, end, count int, prev previous) error {
	if f.shape == scalar {
		return nil
	}
	if f.dropped {
		err := w.plain.until(start)
		w.plain.from = end
		return err
	}
	run, into := w.plain.data[start:end], w.dst.Field(f.index)
	k, keyed, found := w.unchanged(f, number, run, count)
	h := w.m.whole(w.at, f.slot, f.whole)
	looked := !found && len(run) <= maxPart && h.wanted()
	if !found && !looked && f.shape == leaf && !f.strings {
		return f.checkEntries(run)
	}
	if err := w.plain.until(start); err != nil {
		return err
	}
	w.plain.from = end
	if found {
		into.Set(w.own.last.Field(f.index))
		w.m.same(len(run))
		w.at.forget(f.slot)
		return nil
	}
	if looked {
		if !keyed {
			k = w.m.keyOf(run)
		}
		if w.m.find(f.whole, h, k, len(run), into) {
			w.at.forget(f.slot)
			return nil
		}
	}
	if err := w.decode(f, number, into, run, count, prev); err != nil {
		return err
	}
	if looked {
		w.m.keep(f.whole, h, k, len(run), into)
	}
	return nil
}

// decode decodes the run of one field into its place.
func (w *walk) decode(f *field, number int, into reflect.Value, run []byte, count int, prev previous) error {
	if f.strings {
		return w.m.strings(into, run, prev)
	}
	if f.shape == leaf {
		if err := f.checkEntries(run); err != nil {
			return err
		}
		return w.plain.unmarshal(run)
	}
	nested := f.nested.Load()
	if nested == nil {
		nested = w.m.planOf(f.elem)
		f.nested.Store(nested)
	}
	switch f.shape {
	case message:
		return w.m.message(nested, w.at.below(f.slot, 0, nested.slots), into, payload(run), prev.payload(), w.own.below(f, number))
	case pointer:
		into.Set(reflect.New(f.elem))
		return w.m.message(nested, w.at.below(f.slot, 0, nested.slots), into.Elem(), payload(run), prev.pointer(), w.own.below(f, number))
	}
	return w.elements(f, number, nested, into, run, count, prev)
}

// elements decodes a run of repeated messages.
func (w *walk) elements(f *field, number int, nested *plan, into reflect.Value, run []byte, count int, prev previous) error {
	m := w.m
	into.Grow(count)
	into.SetLen(count)
	trim(into)
	for i := range count {
		whole, elem, below := cut(&run), into.Index(i), previous{}
		if len(prev.data) > 0 && i < prev.value.Len() {
			below = previous{value: prev.value.Index(i), data: cut(&prev.data)}
		}
		at := w.at.below(f.slot, i, nested.slots)
		h := m.each(at, f.each)
		if below.data != nil && string(whole) == string(below.data) {
			elem.Set(below.value)
			h.same()
			m.same(len(whole))
			continue
		}
		data := payload(whole)
		own := w.own.element(f, number, i)
		k, keyed, found := w.unchangedElement(f, own, data)
		if found {
			elem.Set(own.last)
			m.same(len(whole))
			at.invalid()
			continue
		}
		looked := len(data) <= maxPart && h.wanted()
		if looked {
			if !keyed {
				k = m.keyOf(data)
			}
			if m.find(f.each, h, k, len(data), elem) {
				at.invalid()
				continue
			}
		}
		if err := m.message(nested, at, elem, data, below.payload(), own); err != nil {
			return err
		}
		if looked {
			m.keep(f.each, h, k, len(data), elem)
		}
	}
	return nil
}

// checkEntries looks into the entries of a map. Generated code lets a key or a value reach past
// its entry into the bytes that follow. So the value that it makes of such an entry depends on
// the bytes that it is given with it.
func (f *field) checkEntries(run []byte) error {
	if !f.entries {
		return nil
	}
	for len(run) > 0 {
		_, _, _, size := wire.Field(run)
		entry := payload(run[:size])
		for len(entry) > 0 {
			number, _, _, size := wire.Field(entry)
			if size == 0 || number < 1 || number > 2 {
				return errForm
			}
			entry = entry[size:]
		}
		run = run[size:]
	}
	return nil
}

// strings decodes a map of strings. Its names are shared with all others, its values with the map
// of the previous object.
func (m *decoder) strings(into reflect.Value, run []byte, prev previous) error {
	var last map[string]string
	if prev.data != nil {
		last = prev.value.Interface().(map[string]string)
	}
	set := make(map[string]string, len(last))
	for len(run) > 0 {
		entry := payload(cut(&run))
		var parts [3][]byte // by number of the field
		for last := 0; len(entry) > 0; {
			number, format, _, size := wire.Field(entry)
			if size == 0 || number <= last || number > 2 || format != wire.Bytes {
				return errForm
			}
			parts[number], entry, last = payload(entry[:size]), entry[size:], number
		}
		value, known := last[string(parts[1])]
		if !known || value != string(parts[2]) {
			value = string(parts[2])
		}
		set[m.name(parts[1])] = value
	}
	into.Set(reflect.ValueOf(set))
	return nil
}

// plainRun collects neighbouring fields for the generated code of their message. That code merges
// its input into the struct, so a message may be given to it in parts.
type plainRun struct {
	to   reflect.Value
	data []byte // the whole message
	from int    // what comes before is decoded
	used bool   // something was decoded
}

func (r *plainRun) until(end int) error {
	if r.from == end {
		return nil
	}
	part := r.data[r.from:end]
	r.from, r.used = end, true
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

// cut takes the first field off a run whose form is known to be good.
func cut(run *[]byte) (first []byte) {
	_, _, _, end := wire.Field(*run)
	first, *run = (*run)[:end], (*run)[end:]
	return first
}

// payload is the value of a length-delimited field whose form is known to be good.
func payload(field []byte) []byte {
	_, _, start, end := wire.Field(field)
	return field[start:end]
}
