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
	p := m.planOf(v.Type().Elem())
	d := m.take(len(data))
	err := d.object(p, v.Elem(), data, traced{})
	d.giveBack()
	return err
}

// object decodes a whole object.
func (m *decoder) object(p *plan, into reflect.Value, data []byte, own traced) error {
	before := m.beforeOf(p, into.Type(), p.slots)
	err := m.message(p, before.root, into, data, before.previous(), own)
	before.set(into, data, err == nil)
	return err
}

// message decodes one message into dst, which is zero or, where that is taken, what was.value is.
func (m *decoder) message(p *plan, at *place, dst reflect.Value, data []byte, was previous, own traced) error {
	w := walk{m: m, p: p, at: at, dst: dst, was: was, own: own, plain: plainRun{to: dst, data: data}}
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
	return nil
}

// walk goes through one message beside the one that stood in its place before.
type walk struct {
	m      *decoder
	p      *plan
	at     *place // nil: nothing stood here, and nothing is noted
	dst    reflect.Value
	was    previous
	own    traced
	old    []span // of the fields of was that are still to come
	fields []span
	last   int // the number of the field before
	plain  plainRun
}

// begin takes over the whole struct of the message before: most fields will be equal, and the others are set to zero one by one.
func (w *walk) begin() {
	if w.at != nil {
		w.fields = w.at.spare[:0]
	}
	switch {
	case w.at == nil || !w.at.valid || w.was.data == nil:
		w.dst.SetZero()
	default:
		w.old = w.at.fields
		if !w.was.taken {
			w.dst.Set(w.was.value)
		}
	}
	if w.at != nil {
		w.at.valid = false
	}
}

// end notes where the fields are, for the next message in this place.
func (w *walk) end() {
	for _, o := range w.old {
		w.zero(o)
	}
	if w.plain.used {
		for _, i := range w.p.slices {
			trim(w.dst.Field(i))
		}
	}
	if w.at != nil {
		w.at.fields, w.at.spare, w.at.valid = w.fields, w.at.fields, true
	}
}

func (w *walk) zero(o span) { w.dst.Field(w.p.fields[o.number].index).SetZero() }

// same passes over the runs that stood here in the message before too: their values are in dst already.
func (w *walk) same(start int) (end int, err error) {
	here, onlyScalars := start, true
	for len(w.old) > 0 {
		f := w.repeats(w.old[0], here)
		if f == nil {
			break
		}
		o := w.old[0]
		size := o.end - o.start
		w.old = w.old[1:]
		w.note(o.number, here, here+size)
		here += size
		if f.shape != scalar {
			onlyScalars = false
			w.at.slots[f.slot].whole.same()
			w.m.same(size)
		}
	}
	if here == start || onlyScalars && w.plain.from < start {
		return here, nil // scalars are cheaper to decode again than to interrupt what is decoded plainly
	}
	err = w.plain.until(start)
	w.plain.from = here
	return here, err
}

// repeats returns the field whose run o stands here too; nil where it does not.
func (w *walk) repeats(o span, here int) *field {
	data, end := w.plain.data, here+o.end-o.start
	if end > len(data) || string(data[here:end]) != string(w.was.data[o.start:o.end]) || o.number <= w.last {
		return nil
	}
	f := w.p.fields[o.number]
	if !f.single && end < len(data) {
		if again, _, _ := next(data[end:]); again == o.number {
			return nil // it goes on
		}
	}
	return f
}

// run decodes the run of one field, which begins at start, and returns its end.
func (w *walk) run(start int) (end int, err error) {
	data := w.plain.data
	number, wire, size := next(data[start:])
	if size == 0 || number <= w.last || number >= len(w.p.fields) || !w.p.fields[number].takes(wire) {
		return 0, errForm
	}
	f := w.p.fields[number]
	end, count := start+size, 1
	for !f.single && end < len(data) {
		again, wire, size := next(data[end:])
		if size == 0 || again != number {
			break
		}
		if !f.takes(wire) {
			return 0, errForm
		}
		end += size
		count++
	}
	was := w.counterpart(f, number)
	w.note(number, start, end)
	return end, w.field(f, number, start, end, count, was)
}

func (w *walk) note(number, start, end int) {
	w.last = number
	if w.at != nil {
		w.fields = append(w.fields, span{number, start, end})
	}
}

// counterpart is the same field of the message before. What dst has taken over of it is set to zero.
func (w *walk) counterpart(f *field, number int) (was previous) {
	for len(w.old) > 0 && w.old[0].number < number {
		w.zero(w.old[0])
		w.old = w.old[1:]
	}
	if len(w.old) > 0 && w.old[0].number == number {
		o := w.old[0]
		w.old = w.old[1:]
		was = previous{value: w.was.value.Field(f.index), data: w.was.data[o.start:o.end]}
		if was.taken = f.shape == message; !was.taken {
			w.zero(o)
		}
	}
	return was
}

// takes reports whether a field of that wire type is one that this code knows. What it leaves to the generated code, that
// code judges.
func (f *field) takes(wire int) bool {
	return f != nil && (wire == wireBytes || f.shape <= leaf && !f.strings)
}

// field decodes the run of one field, data[start:end], or leaves it to the plain run.
func (w *walk) field(f *field, number, start, end, count int, was previous) error {
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
		into.Set(w.own.was.Field(f.index))
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
	if err := w.decode(f, number, into, run, count, was); err != nil {
		return err
	}
	if looked {
		w.m.keep(f.whole, h, k, len(run), into)
	}
	return nil
}

// decode decodes the run of one field into its place.
func (w *walk) decode(f *field, number int, into reflect.Value, run []byte, count int, was previous) error {
	if f.strings {
		return w.m.strings(into, run, was)
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
		return w.m.message(nested, w.at.below(f.slot, 0, nested.slots), into, payload(run), was.payload(), w.own.below(f, number))
	case pointer:
		into.Set(reflect.New(f.elem))
		return w.m.message(nested, w.at.below(f.slot, 0, nested.slots), into.Elem(), payload(run), was.pointer(), w.own.below(f, number))
	}
	return w.elements(f, number, nested, into, run, count, was)
}

// elements decodes a run of repeated messages.
func (w *walk) elements(f *field, number int, nested *plan, into reflect.Value, run []byte, count int, was previous) error {
	m := w.m
	into.Grow(count)
	into.SetLen(count)
	trim(into)
	for i := range count {
		whole, elem, old := cut(&run), into.Index(i), previous{}
		if len(was.data) > 0 && i < was.value.Len() {
			old = previous{value: was.value.Index(i), data: cut(&was.data)}
		}
		below := w.at.below(f.slot, i, nested.slots)
		h := m.each(below, f.each)
		if old.data != nil && string(whole) == string(old.data) {
			elem.Set(old.value)
			h.same()
			m.same(len(whole))
			continue
		}
		data := payload(whole)
		own := w.own.element(f, number, i)
		k, keyed, found := w.unchangedElement(f, own, data)
		if found {
			elem.Set(own.was)
			m.same(len(whole))
			below.invalid()
			continue
		}
		looked := len(data) <= maxPart && h.wanted()
		if looked {
			if !keyed {
				k = m.keyOf(data)
			}
			if m.find(f.each, h, k, len(data), elem) {
				below.invalid()
				continue
			}
		}
		if err := m.message(nested, below, elem, data, old.payload(), own); err != nil {
			return err
		}
		if looked {
			m.keep(f.each, h, k, len(data), elem)
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

// strings decodes a map of strings. Its names are shared with all others, its values with the map of the object before.
func (m *decoder) strings(into reflect.Value, run []byte, was previous) error {
	var old map[string]string
	if was.data != nil {
		old = was.value.Interface().(map[string]string)
	}
	set := make(map[string]string, len(old))
	for len(run) > 0 {
		entry := payload(cut(&run))
		var parts [3][]byte // by number of the field
		for last := 0; len(entry) > 0; {
			number, wire, size := next(entry)
			if size == 0 || number <= last || number > 2 || wire != wireBytes {
				return errForm
			}
			parts[number], entry, last = payload(entry[:size]), entry[size:], number
		}
		value, known := old[string(parts[1])]
		if !known || value != string(parts[2]) {
			value = string(parts[2])
		}
		set[m.name(parts[1])] = value
	}
	into.Set(reflect.ValueOf(set))
	return nil
}

// plainRun collects neighbouring fields that the generated code of their message decodes. That code merges what it is
// given into what is there, so a message may be given to it in parts.
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

// cut takes the first field off a run that next has read.
func cut(run *[]byte) (first []byte) {
	_, _, size := next(*run)
	first, *run = (*run)[:size], (*run)[size:]
	return first
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
