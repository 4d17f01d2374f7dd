package sharing

import (
	"encoding/binary"
	"slices"
)

// A note is the key of a part of an object that did not change the last time: adjacent fields of a
// message, or an element of a list. The last state is rarely in the processor's cache, so that it
// is slow to read. Its notes are. So the next change is compared with them first: one hash takes
// the place of many comparisons.
//
// Notes only save time. Without them each part is compared with the last state, as a part that has
// no note is. A decoder asks noted, and calls note for a part that has not changed.
type note struct {
	at   path
	key  key
	size int // bytes on the wire
}

// Notes are those of one state of an object, at most 1.5 KB.
type Notes []note

// notes are those of an object's last state, from the part on that is decoded, and those of the
// state that is decoded. Both are in the order of their paths.
type notes struct{ was, now Notes }

// verdict is the answer of the notes for a part.
type verdict uint8

const (
	unknown verdict = iota
	differs
	equal
)

// noted compares bytes with the note of the part at a path. A part of several fields begins b; end
// is where it ends, and to the number of its last field. The note of an equal part is carried over
// to the place where the part is now. Paths must be asked for in their order.
func (d *decoder) noted(at, now path, b []byte) (is verdict, end, to int) {
	n := &d.notes
	for len(n.was) > 0 && n.was[0].at < at {
		n.was = n.was[1:]
	}
	if len(n.was) == 0 || n.was[0].at>>step != at>>step {
		return unknown, 0, 0
	}
	was := n.was[0]
	to = int(was.at & lastField)
	if was.size < len(b) {
		if tag, _ := binary.Uvarint(b[was.size:]); to == 0 || int(tag>>3) <= to {
			return differs, 0, to
		}
	}
	if was.size > len(b) || d.keyOf(b[:was.size]) != was.key {
		return differs, 0, to
	}
	if len(n.now) < d.limits.notes {
		was.at = now | path(to)
		n.now = append(n.now, was)
	}
	return equal, was.size, to
}

// note notes a part that is as in the last state, in place of the notes of its parts: those from
// one index to another. So the next change compares one key sooner than several.
func (d *decoder) note(at path, b []byte, from, to int) {
	room := len(d.notes.now) < d.limits.notes || to > from
	if at != 0 && len(b) >= minNoted && len(b) <= maxNotedBytes && room {
		d.notes.now = slices.Replace(d.notes.now, from, to, note{at, d.keyOf(b), len(b)})
	}
}

// path is a place in an object, in five numbers: a field, a field in it, an element (from 1 on), a
// field in the element, and the last field of a run. The run begins with the field that the other
// numbers name. Numbers that are not needed are 0.
type path uint64

const (
	step       = 11 // bits of a number: up to highest
	outerShift = 4 * step
	innerShift = 3 * step
	elemShift  = 2 * step
	partShift  = 1 * step
	lastField  = 1<<step - 1 // the bits of a run's last field
	maxTraced  = 1<<step - 2 // elements that a path can tell apart
)

// before is a message of the last state of an object, or a part of it; nil if there is none.
type before struct {
	ref
	at    path  // zero if it lies too deep for notes
	shift uint8 // of the numbers of the fields
	// all: parts without a note are compared too. A part that could have been noted and was not has
	// changed the last time, and often does again.
	all bool
}

// part is a field of the message.
func (b before) part(f *field) before {
	if b.at != 0 {
		b.at |= path(f.number) << b.shift
	}
	b.ref = b.field(f.offset)
	return b
}

// message is the message that a part is, or points to.
func (b before) message(at ref) before {
	b.ref = at
	if b.shift != outerShift {
		b.at = 0
	}
	b.shift = innerShift
	return b
}

// element is element i of the list that a part is.
func (b before) element(i int, at ref) before {
	b.ref = at
	if b.shift < innerShift || i >= maxTraced {
		b.at = 0
	} else if b.at != 0 {
		b.at |= path(i+1) << elemShift
	}
	b.shift = partShift
	return b
}

// equalRun is the run of adjacent fields that are as in the last state, while a message is decoded.
type equalRun struct {
	last     before
	b        []byte // the message
	from, to int    // numbers of the run's first and last field; from is 0 while no run has begun
	start    int    // the bytes of the run
	stop     int
	notes    int // how many there were before it
	broken   int // up to this field, a run that was noted has changed: its parts may be equal
}

// take takes over the fields from f on if they are a run that was noted, and returns where it ends,
// and the number of its last field. End is 0 if they are not, or if there is no last state to take
// them from.
func (r *equalRun) take(d *decoder, p *plan, dst ref, f wireField) (end, to int) {
	at, later := r.last.at|path(f.number)<<r.last.shift, len(d.notes.now)
	is, size, to := d.noted(at, at, r.b[f.start:])
	if is != equal {
		r.broken = max(r.broken, to)
		return 0, 0
	}
	r.end(d, later)
	if r.last.p == nil {
		return 0, 0
	}
	for _, at := range p.index[f.number : to+1] {
		if at != 0 {
			f := &p.fields[at-1]
			dst.field(f.offset).set(f.typ, r.last.field(f.offset))
		}
	}
	d.same(size)
	return f.start + size, to
}

// extend takes in a field that was decoded, and ends at stop: it begins a run or makes it longer if
// it is as in the last state, and ends it otherwise. Later is the number of notes before the field.
func (r *equalRun) extend(d *decoder, f wireField, to ref, stop, later int) {
	if f.kind == skipped || !to.identical(r.last.field(f.offset), f.typ.Size()) {
		r.end(d, later)
		return
	}
	if r.from == 0 {
		r.from, r.start, r.notes = f.number, f.start, later
	}
	r.to, r.stop = f.number, stop
}

// end ends the run, if there is one, and notes it in place of its parts: their notes end at later.
func (r *equalRun) end(d *decoder, later int) {
	if r.from != 0 {
		d.note(r.last.at|path(r.from)<<r.last.shift|path(r.to), r.b[r.start:r.stop], r.notes, later)
		r.from = 0
	}
}
