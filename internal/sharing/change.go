package sharing

import (
	"reflect"
	"slices"
)

// A change of an object differs from its last state in few parts. So the bytes of each part are
// compared with the Go value that the last state has there. An equal part is taken over without a
// hash or a copy, such as a name, an address or the whole spec of this object alone.
//
// The reader has the last state, and keeps the notes. So no weak pointer has to be read, which
// waits while a garbage collection ends.

// Follows reports whether UnmarshalAfter would compare an object of that size with its last state.
// A nil memo follows nothing.
func (m *Memo) Follows(size int) bool { return m != nil && size >= m.limits.follow }

// Last is what a reader knows of the last state of an object.
type Last struct {
	Changes bool  // false: the object may be a new one
	Object  any   // nobody modifies it; of no use unless it is of the new state's type
	Notes   Notes // that its decoding returned, or nil
}

// UnmarshalAfter decodes a message beside the last state of its object, if there is one, and else
// as [Memo.Unmarshal]. The caller keeps the returned notes, with obj, for the next change. A nil
// memo leaves obj to the generated code.
func (m *Memo) UnmarshalAfter(last Last, data []byte, obj unmarshaler) (now Notes, err error) {
	switch {
	case m == nil:
		return nil, obj.Unmarshal(data)
	case !last.Changes:
		return nil, m.Unmarshal(data, obj)
	}
	return m.unmarshalBeside(last, data, obj)
}

// unmarshalBeside is a function of its own for its frame: below a plain decoding, it would double
// the stack of each reader that waits (refs has one for each name).
func (m *Memo) unmarshalBeside(last Last, data []byte, obj unmarshaler) (now Notes, err error) {
	v, from, noted := reflect.ValueOf(obj), reflect.ValueOf(last.Object), last.Notes
	if !m.Follows(len(data)) || !from.IsValid() || from.Type() != v.Type() || v.Kind() != reflect.Pointer || from.IsNil() {
		return nil, m.unmarshal(data, obj, false)
	}
	d := m.take(len(data), false)
	if d == nil {
		return nil, obj.Unmarshal(data)
	}
	d.changes++
	was := before{at: 1 << (5 * step), shift: outerShift, all: len(noted) == 0 || d.changes%notedAnew == 0}
	if d.changes%inFull != 0 {
		was.ref = refTo(from)
	}
	d.notes = notes{was: noted, now: d.notes.now[:0]}
	if err = d.object(v, obj, data, was); err == nil {
		if now = noted; !slices.Equal(d.notes.now, noted) {
			now = slices.Clone(d.notes.now)
		}
	}
	d.notes.was = nil
	m.giveBack(d)
	return now, err
}

// part decodes a message or the run of a repeated field: beside the value that the last state has
// there, or as a whole that may be equal in another object.
func (d *decoder) part(n *node, f *field, dst, to ref, last before, b []byte, count, index int) bool {
	last = last.part(f)
	if f.kind != inline && (f.kind == generated || last.p == nil || as[ref](last.ref).p == nil) {
		return d.sought(n, f, dst, to, before{}, b, count, index) // nothing to compare with
	}
	compares := last.all || last.at == 0 || len(b) < minNoted
	switch f.kind {
	case inline:
		if below := d.below(n, f); last.p != nil {
			return below != nil && d.walk(below, to, b, last.message(last.ref), index)
		}
	case repeated:
		below := d.below(n, f)
		return below != nil && d.elementsBeside(n, f, below, to, last, b, count, index)
	case pointed:
		below := d.below(n, f)
		if was := *as[ref](last.ref); compares && below != nil && d.repeats(below, was, b, index) {
			*as[ref](to) = was
			return true
		}
	default:
		if compares && f.holds(last.ref, b, count) {
			to.set(f.typ, last.ref)
			d.same(len(b))
			return true
		}
	}
	return d.sought(n, f, dst, to, last, b, count, index)
}

// oldList is the list of the last state, while another one is decoded beside it.
type oldList struct {
	below *node
	was   before
	first ref
	had   int
	moves bool // the lists have different lengths
	shift int  // from a position in the new list to that in the old one
}

// align finds the element of the old list that b stands for, the new element i: in its place or,
// if another element may have gone or come before it, one place further on or back. It reports
// whether the two are equal, and where the new element is noted. An element that moved has notes
// of its own, but none of its parts.
func (d *decoder) align(l *oldList, i int, b []byte, index int) (own before, here path, same bool) {
	at := func(i int) ref { return l.first.field(uintptr(i) * l.below.plan.typ.Size()) }
	old := i + l.shift
	if old < l.had {
		own = l.was.element(old, at(old))
	}
	here = l.was.element(i, own.ref).at
	is := unknown
	if own.at != 0 && len(b) >= minNoted {
		is, _, _ = d.noted(own.at, here, b)
	}
	switch {
	case is == equal:
		d.same(len(b))
		return own, here, true
	case is == unknown && own.p != nil && (own.all || own.at == 0) && d.repeats(l.below, own.ref, b, index):
		d.note(here, b, len(d.notes.now), len(d.notes.now))
		return own, here, true
	}
	for _, by := range [2]int{1, -1} {
		if to := old + by; l.moves && to >= 0 && to < l.had && d.repeats(l.below, at(to), b, index) {
			l.shift += by
			return before{ref: at(to)}, here, true
		}
	}
	if own.at != here {
		own.at = 0
	}
	own.all = own.all || is == differs // its parts may still be equal
	return own, here, false
}

// elementsBeside decodes a run of messages beside the list of the last state. It makes a list of
// its own from the first difference on.
func (d *decoder) elementsBeside(n *node, f *field, below *node, to ref, last before, run []byte, count, index int) bool {
	if count > maxNotedList {
		last.at = 0
	}
	size := below.plan.typ.Size()
	first, had := *as[ref](last.ref), len(*as[[]byte](last.ref))
	old := oldList{below: below, was: last, first: first, had: had, moves: count != had}
	var made ref // nil while every element is the one of the last state
	if old.moves {
		made = below.array(count)
	}
	unchanged := 0
	for i := range count {
		var b []byte
		b, run = f.occurrence(run)
		notes := len(d.notes.now)
		own, here, same := d.align(&old, i, b, 5*index+i)
		if same {
			unchanged++
			if made.p != nil {
				made.field(uintptr(i)*size).set(f.elem, own.ref)
			}
			continue
		}
		if made.p == nil {
			made = below.array(count)
			for i := range i {
				made.field(uintptr(i)*size).set(f.elem, first.field(uintptr(i)*size))
			}
		}
		element := made.field(uintptr(i) * size)
		if !d.element(f, n.slots[f.slot].each, below, element, own, b, 5*index+i) {
			return false
		}
		if own.p != nil && element.identical(own.ref, size) {
			unchanged++
			d.note(here, b, notes, len(d.notes.now))
		}
	}
	if unchanged == count && !old.moves {
		made = first
	}
	to.setSlice(made, count)
	return true
}

// repeats reports whether b decodes to a message of the last state, and counts it.
func (d *decoder) repeats(n *node, last ref, b []byte, index int) bool {
	counts := d.counts
	ok := d.matches(n, last, b, index)
	d.counts = counts
	if ok {
		d.same(len(b))
	}
	return ok
}

// matches reports whether walk would make a message out of b that is deeply equal to last. It may
// be false although it would.
func (d *decoder) matches(n *node, last ref, b []byte, index int) bool {
	p, number := n.plan, 0
	if len(p.fields) == 0 {
		return false
	}
	for i := 0; i < len(b); {
		f, end := p.next(b, i, number)
		if end == 0 || f.number > number+1 && !p.lacks(last, number+1, f.number) {
			return false
		}
		i, number = end, f.number
		if f.field != nil && !d.matchesField(n, f, last.field(f.offset), b[f.from:i], index) {
			return false
		}
	}
	return p.lacks(last, number+1, len(p.index))
}

// lacks reports whether a message has no value in the fields of some numbers, as decoding leaves
// them if they do not come.
func (p *plan) lacks(message ref, from, to int) bool {
	for _, at := range p.index[min(from, len(p.index)):min(to, len(p.index))] {
		if at == 0 {
			continue
		}
		if f := &p.fields[at-1]; !message.field(f.offset).isZero(f.typ) {
			return false
		}
	}
	return true
}

// matchesField compares a field, or a run.
func (d *decoder) matchesField(n *node, f wireField, value ref, b []byte, index int) bool {
	switch f.kind {
	case skipped:
		return as[ref](value).p == nil
	case text, plain:
		return f.scalar.is(value, b, f.value)
	case pointerTo:
		to := *as[ref](value)
		return to.p != nil && f.scalar.is(to, b, f.value)
	case inline:
		below := d.below(n, f.field)
		return below != nil && d.matches(below, value, b, index)
	case pointed:
		below, value := d.below(n, f.field), *as[ref](value)
		return below != nil && value.p != nil && d.matches(below, value, b, index)
	case texts, textMap:
		return f.holds(value, b, f.count)
	case repeated:
		return d.matchesElements(n, f.field, value, b, f.count, index)
	}
	return f.slot >= 0 && d.isMemos(&n.slots[f.slot], f.field, value, b, index)
}

func (d *decoder) matchesElements(n *node, f *field, list ref, run []byte, count, index int) bool {
	below := d.below(n, f)
	first := *as[ref](list)
	if below == nil || len(*as[[]byte](list)) != count {
		return false
	}
	for i := range count {
		var b []byte
		b, run = f.occurrence(run)
		if !d.matches(below, first.field(uintptr(i)*below.plan.typ.Size()), b, 5*index+i) {
			return false
		}
	}
	return true
}

// holds reports whether a list or map of strings is the one in a run. Servers write maps in order,
// so that no key comes twice.
func (f *field) holds(value ref, run []byte, count int) bool {
	if f.kind == texts {
		all := *as[[]string](value)
		if len(all) != count {
			return false
		}
		for _, is := range all {
			var b []byte
			if b, run = f.occurrence(run); is != string(b) {
				return false
			}
		}
		return true
	}
	all := *as[map[string]string](value)
	if len(all) != count {
		return false
	}
	var last []byte
	for i := range count {
		var b []byte
		b, run = f.occurrence(run)
		key, text, ok := entryOf(b)
		if !ok || i > 0 && string(last) >= string(key) {
			return false
		}
		if is, known := all[string(key)]; !known || is != string(text) {
			return false
		}
		last = key
	}
	return true
}

// isMemos reports whether a value that only the generated code understands is the very one that the
// memo has for these bytes.
func (d *decoder) isMemos(s *protoSlot, f *field, value ref, run []byte, index int) bool {
	if s.whole.skip > 0 || len(run) < f.least || len(run) > maxPart {
		return false
	}
	if i := index % maxRecent; i < len(s.whole.recent) && string(s.whole.recent[i].data) == string(run) {
		return s.whole.recent[i].at.identical(value, f.typ.Size())
	}
	if s.found.p == nil {
		s.found = refTo(reflect.New(f.typ))
	}
	found, _ := d.find(f.whole.of(d.common, f.typ), &s.whole.habit, d.keyOf(run), len(run), s.found)
	return found && s.found.identical(value, f.typ.Size())
}
