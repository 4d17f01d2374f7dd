package sharing

import "reflect"

// Neighbours in a list are alike: it is sorted by name, and the pods of a ReplicaSet follow each
// other. So each message is first held beside the one that stood in the same place of the
// previous object. Parts that are equal there are taken over for the price of comparing bytes;
// only the others are looked up.

// previousObject is the last object of one type.
type previousObject struct {
	root   *place
	value  reflect.Value // a copy: the object's own head is its reader's
	data   []byte
	places int // below root
}

func newPrevious(t reflect.Type, slots int) *previousObject {
	b := &previousObject{value: reflect.New(t).Elem()}
	b.root = &place{of: b, slots: make([]slot, slots)}
	return b
}

func (b *previousObject) previous() previous {
	if !b.root.valid {
		return previous{}
	}
	return previous{value: b.value, data: b.data}
}

func (b *previousObject) set(value reflect.Value, data []byte, ok bool) {
	if !ok {
		b.root.valid = false
	}
	if !b.root.valid {
		b.value.SetZero()
		b.data = b.data[:0]
		return
	}
	b.value.Set(value)
	b.data = append(b.data[:0], data...)
}

// place is where a message stands: in which field of which message, and among how many. It knows
// the fields of the message that stood there last, if that was taken apart. Only the bounds of
// fields are kept here: the caller passes the previous message down.
//
// Invariant: a valid place describes the message that stands there in the previous object, if
// there is one.
type place struct {
	of            *previousObject
	valid         bool
	element       habit // of looking up an element that stands here
	fields, spare []span
	slots         []slot
}

// slot is the knowledge of one field in a place, besides its bounds.
type slot struct {
	whole    habit
	nested   []*place // by number of the element
	elements []span   // of a JSON array, brackets included; protobuf needs no bounds
	spare    []span
}

// span is the bounds of one field, counted from the beginning of its message.
type span struct{ number, start, end int }

// below is the place of element i in a slot, a message with that many slots; nil if there are too
// many.
func (at *place) below(in, i, slots int) *place {
	if at == nil || i >= maxElements {
		return nil
	}
	s := &at.slots[in]
	for len(s.nested) <= i {
		if at.of.places == maxPlaces {
			return nil
		}
		at.of.places++
		s.nested = append(s.nested, &place{of: at.of, slots: make([]slot, slots)})
	}
	return s.nested[i]
}

// forget notes that the field which stands here now was not taken apart.
func (at *place) forget(in int) {
	if at != nil {
		at.slots[in].elements = at.slots[in].elements[:0]
		for _, below := range at.slots[in].nested {
			below.valid = false
		}
	}
}

// previous is a message or a run of the previous object: its bytes, and the value that was
// decoded from them. Without bytes there is none.
type previous struct {
	value reflect.Value
	data  []byte
	taken bool // over: the place to decode into has the value already
}

// previousOf is the previous object of the type that a plan is for.
func (d *decoder) previousOf(plan any, t reflect.Type, slots int) *previousObject {
	b := d.previous[plan]
	if b == nil {
		b = newPrevious(t, slots)
		d.previous[plan] = b
	}
	return b
}

// whole is the habit of looking up a field in a place.
func (d *decoder) whole(at *place, in int, s *site) *habit {
	if at == nil {
		return d.farHabit(s)
	}
	return &at.slots[in].whole
}

// each is the habit of looking up the element that is in a place.
func (d *decoder) each(at *place, s *site) *habit {
	if at == nil {
		return d.farHabit(s)
	}
	return &at.element
}

// farHabit is the habit of a field whose places are not told apart.
func (d *decoder) farHabit(s *site) *habit {
	h := d.far[s]
	if h == nil {
		h = &habit{}
		d.far[s] = h
	}
	return h
}

// forgetPrevious lets go of the previous objects. The habits of their places stay.
func (d *decoder) forgetPrevious() {
	d.forgetRecent()
	for _, b := range d.previous {
		b.set(reflect.Value{}, nil, false)
	}
}
