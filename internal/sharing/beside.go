package sharing

import "reflect"

// beside is a message or a JSON object that is decoded beside the one that stood in its place in
// the previous object. The walks through protobuf and JSON have it in common.
type beside struct {
	m      *decoder
	layout layout
	at     *place // nil: nothing stood here, and nothing is noted
	dst    reflect.Value
	prev   previous
	left   []span // fields of prev that are still to come
	fields []span // of this message
}

// layout tells where the fields of a message are in its Go struct.
type layout interface {
	// in returns the field with that number in a struct; it is invalid if there is none.
	in(of reflect.Value, number int) reflect.Value
}

// begin takes over the whole struct of the previous message: most fields will be equal, and the
// others are set to zero one by one.
func (b *beside) begin() {
	if b.at == nil || !b.at.valid || b.prev.data == nil {
		b.dst.SetZero()
	} else {
		b.left = b.at.fields
		if !b.prev.taken {
			b.dst.Set(b.prev.value)
		}
	}
	if b.at != nil {
		b.fields, b.at.valid = b.at.spare[:0], false
	}
}

// end notes where the fields are, for the next message in this place.
func (b *beside) end() {
	for _, s := range b.left {
		b.zero(s)
	}
	if b.at != nil {
		b.at.fields, b.at.spare, b.at.valid = b.fields, b.at.fields, true
	}
}

// zero drops a field that was taken over and does not come again.
func (b *beside) zero(s span) {
	if field := b.layout.in(b.dst, s.number); field.IsValid() {
		field.SetZero()
	}
}

// note notes the bounds of a field.
func (b *beside) note(number, start, end int) {
	if b.at != nil {
		b.fields = append(b.fields, span{number, start, end})
	}
}

// repeated passes over a field that is equal in the previous message: its value is in dst already.
func (b *beside) repeated(slot, size int) {
	b.at.slots[slot].whole.same()
	b.m.same(size)
}

// counterpart takes a field out of the previous message, with its bytes. A field that dst has taken
// over is set to zero, unless its message is decoded in place; so are the fields before it.
func (b *beside) counterpart(i int, kind shape) (prev previous) {
	for _, passed := range b.left[:i] {
		b.zero(passed)
	}
	s := b.left[i]
	b.left = b.left[i+1:]
	prev = previous{
		value: b.layout.in(b.prev.value, s.number), data: b.prev.data[s.start:s.end],
		taken: kind == message,
	}
	if !prev.taken {
		b.zero(s)
	}
	return prev
}
