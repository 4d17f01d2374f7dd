package sharing

import "reflect"

// Objects come in an order in which neighbours are alike: a list is sorted by name, and the pods of a ReplicaSet follow
// each other. So each message is first held beside the one that stood in the same place of the object before, and what is
// equal there is taken over at the price of comparing bytes. Only what differs is looked up.

// before is the last object of one type.
type before struct {
	root   *place
	value  reflect.Value // a copy: the object's own head is its reader's
	data   []byte
	places int // below root
}

func newBefore(t reflect.Type, slots int) *before {
	b := &before{value: reflect.New(t).Elem()}
	b.root = &place{of: b, slots: make([]slot, slots)}
	return b
}

// maxBefore is the largest object that is held beside the next one: for that, each decoder keeps it with its bytes.
const maxBefore = 64 << 10

func (b *before) previous() previous {
	if !b.root.valid {
		return previous{}
	}
	return previous{value: b.value, data: b.data}
}

func (b *before) set(value reflect.Value, data []byte, ok bool) {
	if !ok || len(data) > maxBefore {
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

// place is where a message stands: in which field of which message, and among how many. It knows the fields of the message
// that stood there last, if that was taken apart. Who goes through a message has the message before from the one around
// it; nothing but the fields' bounds is kept here.
//
// Invariant: a place that is valid describes what stands there in the object before, if anything does.
type place struct {
	of            *before
	valid         bool
	element       habit // of looking up what stands here, where it is one of several
	fields, spare []span
	slots         []slot
}

// invalid says that what now stands here was not taken apart.
func (at *place) invalid() {
	if at != nil {
		at.valid = false
	}
}

// slot is what a place knows of one field, besides its bounds.
type slot struct {
	whole     habit
	ownHabits *ownHabits // nil until needed
	nested    []*place   // by number of the element
	elements  []span     // of a JSON array, the brackets included; those of protobuf are found at once
	spare     []span
}

// span is the run of one field, counted from the beginning of its message.
type span struct{ number, start, end int }

const (
	maxElements = 64      // of one run that have places of their own
	maxPlaces   = 1 << 12 // of one type
	maxNoted    = 1 << 10 // elements of a JSON array whose bounds are kept
)

// below is the place of element i in a slot, a message with that many slots itself; nil where there are too many.
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

// forget says that what now stands in a field was not taken apart.
func (at *place) forget(in int) {
	if at != nil {
		at.slots[in].elements = at.slots[in].elements[:0]
		for _, below := range at.slots[in].nested {
			below.valid = false
		}
	}
}

// previous is a message or a run of the object before: its bytes, and what they were decoded into. Without bytes there is
// none.
type previous struct {
	value reflect.Value
	data  []byte
	taken bool // over: the place to decode into has the value already
}

// payload is the message in the run of one field.
func (p previous) payload() previous {
	if p.data != nil {
		p.data = payload(p.data)
	}
	return p
}

// pointer is the same where the value is a pointer to it.
func (p previous) pointer() previous {
	if p.data == nil || p.value.IsNil() {
		return previous{}
	}
	p.value = p.value.Elem()
	return p.payload()
}
