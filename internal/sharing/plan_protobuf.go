package sharing

import (
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tributary-go/tributary/internal/wire"
)

// plan is how the protobuf messages of one type are decoded. It is made once per type, from the
// struct tags that the generators leave, `protobuf:"bytes,2,opt,name=spec"`: no type has code of
// its own here. It does not change afterwards.
type plan struct {
	typ    reflect.Type
	fields []field
	index  []uint16 // by number: 1 + position in fields, 0 if there is none
	slots  int      // how many fields have a slot
	slices []uintptr
}

// field is one field of a message.
type field struct {
	kind    kind
	format  byte // wire type
	entries bool // its values are entries of a map
	isRun   bool // it may stand in a message more than once, in one run
	free    bool // its wire type is left to the generated code
	number  int
	head    int // bytes of its tag
	least   int // bytes that are worth a look-up
	slot    int // -1: nothing is shared
	offset  uintptr
	typ     reflect.Type
	elem    reflect.Type         // of a message, or of a scalar behind a pointer
	scalar  *scalar              // of a plain field, a text or a pointer
	nested  atomic.Pointer[plan] // of elem, made when it is first needed
	whole   lazySite             // of all occurrences together, but for a scalar
	each    lazySite             // of each occurrence of a repeated message
}

// kind is how a field is decoded.
type kind uint8

const (
	skipped   kind = iota // not at all
	text                  // a string
	plain                 // another scalar
	pointerTo             // a pointer to a scalar
	inline                // a message in the struct itself
	pointed               // a pointer to a message
	repeated              // a slice of messages
	texts                 // []string
	textMap               // map[string]string
	generated             // by the generated code of the message around it
)

// unmarshaler is the generated code of a message.
type unmarshaler interface{ Unmarshal(data []byte) error }

var unmarshalerType = reflect.TypeFor[unmarshaler]()

func (m *common) planOf(t reflect.Type) *plan {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.plans[t]; p != nil {
		return p
	}
	p := &plan{typ: t}
	m.plans[t] = p
	if !isMessage(t) {
		return p // without fields: each message of it is decoded plainly
	}
	numbers := 0
	for i := range t.NumField() {
		numbers = max(numbers, numberOf(t.Field(i)))
	}
	p.index = make([]uint16, numbers+1)
	p.fields = make([]field, 0, t.NumField())
	for i := range t.NumField() {
		of := t.Field(i)
		number := numberOf(of)
		if number == 0 {
			continue
		}
		p.fields = append(p.fields, field{typ: of.Type, number: number, offset: of.Offset, head: 1, slot: -1})
		f := &p.fields[len(p.fields)-1]
		p.index[number] = uint16(len(p.fields))
		if number > 15 {
			f.head = 2
		}
		f.classify(of.Tag)
		f.isRun = f.kind >= repeated
		f.free = f.kind == generated && !f.entries
		if m.drops(t, of.Name) {
			f.kind = skipped
		}
		p.addSlot(f)
		if of.Type.Kind() == reflect.Slice {
			p.slices = append(p.slices, of.Offset)
		}
	}
	return p
}

// numberOf reads the field number in a tag; 0 if there is none that can be relied on.
func numberOf(of reflect.StructField) int {
	tag := strings.Split(of.Tag.Get("protobuf"), ",")
	if len(tag) < 2 || !of.IsExported() {
		return 0
	}
	number, err := strconv.Atoi(tag[1])
	if err != nil || number < 1 || number > highest {
		return 0
	}
	return number
}

// classify goes by the Go type: tags are wrong about wire types and repetition in places (PodSpec,
// 22 and 25).
func (f *field) classify(tag reflect.StructTag) {
	t, to := f.typ, f.typ
	if t.Kind() == reflect.Pointer {
		to = t.Elem()
	}
	f.kind, f.format, f.entries = generated, wire.Bytes, t.Kind() == reflect.Map
	f.scalar = scalarOf(to, tag)
	switch {
	case f.scalar != nil && t.Kind() == reflect.Pointer:
		f.kind, f.elem, f.format = pointerTo, to, f.scalar.format
	case f.scalar != nil:
		f.kind, f.format = plain, f.scalar.format
		if t.Kind() == reflect.String {
			f.kind = text
		}
	case isMessage(t):
		f.kind, f.elem, f.least = inline, t, worthMessage
	case isMessage(to):
		f.kind, f.elem, f.least = pointed, to, worthPointer
	case decodesItself(t) || decodesItself(to):
		f.least = worthPointer
	case t.Kind() == reflect.Slice && isMessage(t.Elem()):
		f.kind, f.elem, f.least = repeated, t.Elem(), worthRun
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		f.kind, f.least = texts, worthRun
	case t.ConvertibleTo(stringMapType) && t.Kind() == reflect.Map:
		f.kind, f.least = textMap, worthRun
	default:
		f.least = worthRun
	}
}

// addSlot gives a field its place among those that are remembered.
func (p *plan) addSlot(f *field) {
	switch f.kind {
	case skipped, plain:
		return
	case generated:
		if k := f.typ.Kind(); k != reflect.Pointer && k != reflect.Map && k != reflect.Slice && k != reflect.Struct {
			return // a number of another width
		}
	}
	f.slot = p.slots
	p.slots++
}

func decodesItself(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshalerType) }

// isMessage reports whether a type is a message with generated code and tags. Other types have
// code of their own (Time, Quantity), which tags cannot describe. A message that keeps unknown
// fields (XXX_unrecognized) is left to its code.
func isMessage(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || !decodesItself(t) {
		return false
	}
	tagged := false
	for i := range t.NumField() {
		if strings.HasPrefix(t.Field(i).Name, "XXX_") {
			return false
		}
		switch tag := t.Field(i).Tag.Get("protobuf"); {
		case tag == "-":
			return false
		case tag != "":
			tagged = true
		}
	}
	return tagged
}
