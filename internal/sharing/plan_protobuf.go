package sharing

import (
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
)

// plan is how the protobuf messages of one type are taken apart. It is made once per type, from
// the struct tags that the generators leave, `protobuf:"bytes,2,opt,name=spec"`: no type has code
// of its own here.
type plan struct {
	fields []*field // by number; nil if there is none
	slices []int    // which of the struct's fields are slices that are decoded plainly
	slots  int      // how many fields are looked up
}

// field is one field of a message.
type field struct {
	index   int  // in the struct
	single  bool // it may stand in a message once only, for its occurrences would be merged
	entries bool // its values are entries of a map
	strings bool // it is a map[string]string
	text    bool // it is a string
	dropped bool // it is passed over
	shape   shape
	elem    reflect.Type         // of a message
	nested  atomic.Pointer[plan] // its plan, when it is first needed
	slot    int                  // among the fields that are looked up
	whole   *site                // of all occurrences together; nil for a scalar
	each    *site                // of each occurrence of a repeated message
}

type shape int

const (
	scalar   shape = iota // lies in the struct itself: nothing to share
	leaf                  // decoded by the code of the message around it
	message               // taken apart in turn
	pointer               // a pointer to such a message
	messages              // a slice of them
)

// unmarshaler is the generated code of a message.
type unmarshaler interface{ Unmarshal(data []byte) error }

var unmarshalerType = reflect.TypeFor[unmarshaler]()

// highest is the highest field number that is taken apart; the types of the API end at 43. A plan
// is indexed by number.
const highest = 1 << 10

func (p *plan) in(of reflect.Value, number int) reflect.Value {
	return of.Field(p.fields[number].index)
}

func (m *Memo) planOf(t reflect.Type) *plan {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.plans[t]; p != nil {
		return p
	}
	p := &plan{}
	m.plans[t] = p
	if !isMessage(t) {
		return p // without fields: each message of it is decoded plainly
	}
	for i := range t.NumField() {
		number, f := m.fieldOf(t.Field(i))
		if f == nil {
			continue
		}
		f.index, f.dropped = i, m.drops(t, t.Field(i).Name)
		if f.shape != scalar {
			f.slot = p.slots
			p.slots++
		}
		if f.shape == leaf && t.Field(i).Type.Kind() == reflect.Slice {
			p.slices = append(p.slices, i)
		}
		for len(p.fields) <= number {
			p.fields = append(p.fields, nil)
		}
		p.fields[number] = f
	}
	return p
}

// fieldOf reads a tag; nil if there is none that can be relied on.
func (m *Memo) fieldOf(of reflect.StructField) (number int, f *field) {
	tag := strings.Split(of.Tag.Get("protobuf"), ",")
	if len(tag) < 2 || !of.IsExported() {
		return 0, nil
	}
	number, err := strconv.Atoi(tag[1])
	if err != nil || number < 1 || number > highest {
		return 0, nil
	}
	f = &field{}
	t := of.Type // tags are wrong about wire types and repetition in places (PodSpec, 22 and 25)
	own := reflect.PointerTo(t).Implements(unmarshalerType)
	switch {
	case isMessage(t):
		f.shape, f.elem, f.single = message, t, true
	case t.Kind() == reflect.Pointer && isMessage(t.Elem()):
		f.shape, f.elem, f.single = pointer, t.Elem(), true
	case t.Kind() == reflect.Slice && isMessage(t.Elem()) && !own:
		f.shape, f.elem = messages, t.Elem()
		f.each = m.newSite(f.elem)
	case t.Kind() >= reflect.Bool && t.Kind() <= reflect.Float64:
		f.shape = scalar
	default:
		f.shape, f.entries, f.strings, f.text = leaf, t.Kind() == reflect.Map, t == stringMapType, t.Kind() == reflect.String
	}
	if f.shape != scalar {
		f.whole = m.newSite(t)
	}
	return number, f
}

// isMessage reports whether a type is a message with generated code and tags. Other types have
// code of their own (Time, Quantity), which tags cannot describe.
func isMessage(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || !reflect.PointerTo(t).Implements(unmarshalerType) {
		return false
	}
	tagged := false
	for i := range t.NumField() {
		switch tag := t.Field(i).Tag.Get("protobuf"); {
		case tag == "-":
			return false
		case tag != "":
			tagged = true
		}
	}
	return tagged
}
