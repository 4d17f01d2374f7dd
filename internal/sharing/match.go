package sharing

import (
	"encoding/binary"
	"slices"
)

// isThere reports whether a field of the last state has a value to compare with.
func (f *field) isThere(last ref) bool {
	switch f.kind {
	case inline:
		return true
	case repeated, texts:
		_, n := last.slice()
		return n > 0
	}
	return !last.target().isNil()
}

// adjacent is a run of fields of a message that are as in the last state; zero if there is none.
type adjacent struct {
	from, to   int // numbers of its first and last field
	start, end int // its bytes in the message
	notes      int // how many there were before it
}

// takeNoted takes over the fields from f on if they are a run that was noted of the last state.
// The run ends at end, and its last field has the number to. If it has changed, end is 0. If there
// is no run, or no last state to take it from, to is 0 as well.
func (d *decoder) takeNoted(p *plan, dst ref, last before, b []byte, f wireField, same *adjacent) (end, to int) {
	was, known := d.trace.of(last.path(f.number))
	if !known {
		return 0, 0
	}
	to = int(was.at & lastField)
	end = f.start + was.size
	if end > len(b) || end < len(b) && numberAt(b, end) <= to {
		return 0, to
	}
	run := b[f.start:end]
	if d.keyOf(run) != was.key {
		return 0, to
	}
	d.noteAdjacent(same, last, b, len(d.trace.now))
	d.trace.note(was)
	if last.isNil() {
		return 0, 0
	}
	for _, at := range p.index[f.number : to+1] {
		if at != 0 {
			f := &p.fields[at-1]
			dst.field(f.offset).set(f.typ, last.field(f.offset))
		}
	}
	d.same(len(run))
	return end, to
}

// numberAt is the number of the field that begins at b[i].
func numberAt(b []byte, i int) int {
	tag, _ := binary.Uvarint(b[i:])
	return int(tag >> 3)
}

// noteAdjacent ends a run of fields that are as in the last state. It notes the run in place of its
// parts, whose notes end at later: the next change compares one key sooner than several.
func (d *decoder) noteAdjacent(same *adjacent, last before, b []byte, later int) {
	size := same.end - same.start
	room := len(d.trace.now) < maxNotes || later > same.notes
	if size >= minNoted && size <= maxNotedBytes && room {
		n := note{last.path(same.from) | path(same.to), d.keyOf(b[same.start:same.end]), size}
		d.trace.now = slices.Replace(d.trace.now, same.notes, later, n)
	}
	*same = adjacent{}
}

// elementNoted reports whether own, an element of the last state, was noted with the key of b, and
// whether it was noted at all. The note moves to the place at, where the element is now.
func (d *decoder) elementNoted(own before, at path, b []byte) (known, equal bool) {
	if own.at == 0 || len(b) < minNoted {
		return false, false
	}
	was, known := d.trace.of(own.at)
	if !known {
		return false, false
	}
	if was.size != len(b) || d.keyOf(b) != was.key {
		return true, false
	}
	was.at = at
	d.trace.note(was)
	d.same(len(b))
	return true, true
}

// compared decodes a part beside the value that the last state has there. It does not compare a
// part that could have been noted and was not: such a part has changed the last time too.
func (d *decoder) compared(n *node, f *field, dst, to ref, last before, b []byte, count, index int) bool {
	compares := d.compares || last.at == 0 || len(b) < minNoted
	switch f.kind {
	case texts, textMap:
		if compares && f.holds(last.ref, b, count) {
			to.set(f.typ, last.ref)
			d.same(len(b))
			return true
		}
		return d.sought(n, f, dst, to, last, b, count, index)
	}
	below := d.below(n, f)
	switch {
	case below == nil:
		return false
	case f.kind == inline:
		return d.message(below, to, b, last.message(last.ref), index)
	case f.kind == repeated:
		return d.elementsBeside(n, f, below, to, last, b, count, index)
	}
	if was := last.target(); compares && d.repeats(below, was, b, index) {
		to.point(was)
		return true
	}
	return d.sought(n, f, dst, to, last, b, count, index)
}

// elementsBeside decodes a run of messages beside the list of the last state. It makes a list of
// its own from the first difference on.
func (d *decoder) elementsBeside(n *node, f *field, below *node, to ref, last before, run []byte, count, index int) bool {
	size := below.plan.typ.Size()
	was, had := last.slice()
	if count > maxNotedList {
		last = before{ref: last.ref}
	}
	var made ref // nil while every element is the one of the last state
	if count != had {
		made = below.array(count)
	}
	shift := 0 // from a position here to that in the last state
	same := 0  // how many elements are as in the last state
	for i := range count {
		var b []byte
		b, run = f.occurrence(run)
		var own before // the element in the last state
		if at := i + shift; at < had {
			own = last.element(at, was.element(at, size))
		}
		here := last.element(i, own.ref).at
		known, equal := d.elementNoted(own, here, b)
		if !known && (d.compares || own.at == 0) && !own.isNil() && d.repeats(below, own.ref, b, 5*index+i) {
			equal = true
			d.noteElement(here, b, len(d.trace.now))
		}
		if !equal && count != had {
			if by := d.moved(below, was, had, i, shift, b, index); by != 0 {
				equal, shift = true, shift+by
				own = before{ref: was.element(i+shift, size)}
			}
		}
		if equal {
			same++
		}
		if equal && made.isNil() {
			continue
		}
		if made.isNil() {
			made = below.begun(count, was, i)
		}
		to := made.element(i, size)
		if equal {
			to.set(f.elem, own.ref)
			continue
		}
		if own.at != here { // notes of its parts would be of another element
			own = before{ref: own.ref}
		}
		compares, notes := d.compares, len(d.trace.now)
		d.compares = compares || known // parts of an element that was noted may still be equal
		ok := d.element(f, &n.slots[f.slot].each, below, to, own, b, 5*index+i)
		d.compares = compares
		if !ok {
			return false
		}
		if !own.isNil() && to.identical(own.ref, size) {
			same++
			d.noteElement(here, b, notes)
		}
	}
	if same == count && count == had {
		made = was
	}
	to.setSlice(made, count)
	return true
}

// moved looks for an element of the last state one place further on, and one place back: another
// element may have gone or come before it. It returns the change of the shift, 0 if there is none.
func (d *decoder) moved(below *node, was ref, had, i, shift int, b []byte, index int) (by int) {
	for _, by := range [2]int{1, -1} {
		if at := i + shift + by; at >= 0 && at < had && d.repeats(below, was.element(at, below.plan.typ.Size()), b, 5*index+i) {
			return by
		}
	}
	return 0
}

// noteElement notes an element that is as in the last state, in place of the notes of its parts,
// which begin at from.
func (d *decoder) noteElement(at path, b []byte, from int) {
	if at != 0 && len(b) >= minNoted {
		d.trace.now = d.trace.now[:from]
		d.trace.note(note{at, d.keyOf(b), len(b)})
	}
}

// repeats reports whether a message of the last state is what b decodes to, and counts it.
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
		if f.field == nil {
			continue
		}
		value := last.field(f.offset)
		if !f.isRun {
			if !d.matchesOne(n, f, value, b[f.from:i], index) {
				return false
			}
			continue
		}
		var count int
		if i, count = f.run(b, f.start, i); i == 0 || !d.matchesRun(n, f.field, value, b[f.start:i], count, index) {
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
		f := &p.fields[at-1]
		switch value := message.field(f.offset); f.kind {
		case text:
			if *value.text() != "" {
				return false
			}
		case pointed, repeated, texts, textMap, octets, booleanTo, number32To, number64To, textTo, instantTo, microInstantTo:
			if !value.target().isNil() {
				return false
			}
		case boolean:
			if *value.bool() {
				return false
			}
		default:
			if !value.value(f.typ).IsZero() {
				return false
			}
		}
	}
	return true
}

// matchesOne compares a field that comes once.
func (d *decoder) matchesOne(n *node, f wireField, value ref, b []byte, index int) bool {
	switch f.kind {
	case text:
		return *value.text() == string(b)
	case boolean:
		return *value.bool() == (f.value != 0)
	case number32:
		return *value.int32() == int32(f.value)
	case number64:
		return *value.int64() == int64(f.value)
	case instant, microInstant:
		return isInstant(value, b, f.kind == microInstant)
	case octets:
		return !value.target().isNil() && string(*value.bytes()) == string(b)
	case inline:
		below := d.below(n, f.field)
		return below != nil && d.matches(below, value, b, index)
	case pointed:
		below, value := d.below(n, f.field), value.target()
		return below != nil && !value.isNil() && d.matches(below, value, b, index)
	}
	return f.points(value.target(), b, f.value)
}

// matchesRun compares a field that may come more than once.
func (d *decoder) matchesRun(n *node, f *field, value ref, run []byte, count, index int) bool {
	switch f.kind {
	case skipped:
		return value.target().isNil()
	case texts, textMap:
		return f.holds(value, run, count)
	case repeated:
		below := d.below(n, f)
		first, has := value.slice()
		if below == nil || has != count {
			return false
		}
		size := below.plan.typ.Size()
		for i := range count {
			var b []byte
			if b, run = f.occurrence(run); !d.matches(below, first.element(i, size), b, 5*index+i) {
				return false
			}
		}
		return true
	}
	return f.slot >= 0 && d.isMemos(&n.slots[f.slot], f, value, run, index)
}

// holds reports whether a list or map of strings is the one in a run. Servers write maps in order,
// so that no key comes twice.
func (f *field) holds(value ref, run []byte, count int) bool {
	if f.kind == texts {
		all := *value.texts()
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
	all := *value.textMap()
	if len(all) != count {
		return false
	}
	var before []byte
	for i := range count {
		var b []byte
		b, run = f.occurrence(run)
		key, text, ok := entryOf(b)
		if !ok || i > 0 && string(before) >= string(key) {
			return false
		}
		if is, known := all[string(key)]; !known || is != string(text) {
			return false
		}
		before = key
	}
	return true
}

// isMemos reports whether a value that only the generated code understands is the very one that the
// memo has for these bytes.
func (d *decoder) isMemos(s *protoSlot, f *field, value ref, run []byte, index int) bool {
	if s.whole.resting(f.least, len(run)) {
		return false
	}
	if r := s.whole.same(run, index); r != nil {
		return r.at.identical(value, f.typ.Size())
	}
	if s.found.isNil() {
		s.found = newOf(f.typ)
	}
	found, _ := d.find(f.whole, &s.whole.habit, d.keyOf(run), len(run), s.found.value(f.typ))
	return found && s.found.identical(value, f.typ.Size())
}
