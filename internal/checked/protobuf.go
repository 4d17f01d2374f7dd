package checked

import (
	"reflect"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/wire"
)

// Plan is the form of the protobuf messages of one type. It is read off the struct tags that the
// generators leave, and does not change. A nil Plan accepts nothing.
type Plan struct {
	fields []field // by number
	own    reflect.Type
	text   func(text []byte) bool // of a message that is one text
}

type field struct {
	format byte // wire type; unusual if it has none that is known
	nested *Plan
}

// unusual is no wire type.
const unusual = 0xff

// maxDepth is the deepest nesting that is accepted.
const maxDepth = 64

// unmarshaler is the code of a message.
type unmarshaler interface{ Unmarshal(data []byte) error }

var unmarshalerType = reflect.TypeFor[unmarshaler]()

var (
	plansMu sync.Mutex
	plans   = map[reflect.Type]*Plan{}
)

// Of returns the plan of a struct type; nil if it has no generated protobuf code.
func Of(t reflect.Type) *Plan {
	if t.Kind() != reflect.Struct || !reflect.PointerTo(t).Implements(unmarshalerType) {
		return nil
	}
	plansMu.Lock()
	defer plansMu.Unlock()
	return planOf(t)
}

// planOf makes the plans of a type and of all types in it. The caller holds plansMu.
func planOf(t reflect.Type) *Plan {
	if p := plans[t]; p != nil {
		return p
	}
	p := &Plan{}
	plans[t] = p
	switch {
	case t == reflect.TypeFor[resource.Quantity]():
		p.own, p.text, p.fields = t, isQuantity, []field{1: {format: wire.Bytes}}
	case t == reflect.TypeFor[metav1.Time](), t == reflect.TypeFor[metav1.MicroTime]():
		p.fields = []field{1: {format: wire.Varint}, 2: {format: wire.Varint}}
	case !isMessage(t):
		p.own = t
	default:
		for i := range t.NumField() {
			of := t.Field(i)
			if number := numberOf(of.Tag.Get("protobuf")); number > 0 {
				p.set(number, fieldOf(of.Type))
			}
		}
	}
	return p
}

func (p *Plan) set(number int, f field) {
	for len(p.fields) <= number {
		p.fields = append(p.fields, field{format: none})
	}
	p.fields[number] = f
}

// none is the wire type of a number without a field.
const none = 0xfe

// numberOf is the number in a tag, `protobuf:"bytes,2,opt,name=spec"`; 0 if there is none.
func numberOf(tag string) int {
	parts := strings.Split(tag, ",")
	if len(parts) < 2 {
		return 0
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil || number < 1 || number >= 1<<11 {
		return 0
	}
	return number
}

// isMessage reports whether tags describe all of a type. Other messages are decoded to be checked.
func isMessage(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	tagged := false
	for of := range fieldsOf(t) {
		tag := of.Tag.Get("protobuf")
		if strings.HasPrefix(of.Name, "XXX_") || tag == "-" || tag == "" && !outside(of) || tag != "" && numberOf(tag) == 0 {
			return false
		}
		tagged = tagged || tag != ""
	}
	return tagged
}

// outside reports whether a field is no part of the message: the TypeMeta of an object, and the
// decoded object of a RawExtension.
func outside(of reflect.StructField) bool {
	return of.Type == reflect.TypeFor[metav1.TypeMeta]() || of.Tag.Get("json") == "-"
}

func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// fieldOf goes by the Go type: tags are wrong about wire types in places (PodSpec, 22 and 25).
func fieldOf(t reflect.Type) field {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	decodes := reflect.PointerTo(t).Implements(unmarshalerType)
	switch t.Kind() {
	case reflect.Slice:
		switch elem := t.Elem(); {
		case decodes: // a list that is a message of its own
		case elem.Kind() == reflect.Uint8:
			return field{format: wire.Bytes}
		default:
			return fieldOf(elem)
		}
	case reflect.Map:
		entry := &Plan{}
		entry.set(1, fieldOf(t.Key()))
		entry.set(2, fieldOf(t.Elem()))
		return field{format: wire.Bytes, nested: entry}
	case reflect.String:
		return field{format: wire.Bytes}
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return field{format: wire.Varint}
	case reflect.Float64:
		return field{format: wire.Fixed64}
	case reflect.Float32:
		return field{format: wire.Fixed32}
	}
	if !decodes {
		return field{format: unusual}
	}
	return field{format: wire.Bytes, nested: planOf(t)}
}

// Accepts reports that the type's code decodes data without an error. If it is false, only that
// code can tell.
func (p *Plan) Accepts(data []byte) bool { return p != nil && p.accepts(data, 0) }

func (p *Plan) accepts(data []byte, depth int) bool {
	if depth > maxDepth {
		return false
	}
	if p.own != nil && (p.text == nil || !p.accept(data, depth)) { // few, and small
		return reflect.New(p.own).Interface().(unmarshaler).Unmarshal(data) == nil
	}
	return p.accept(data, depth)
}

// accept walks the fields of a message.
func (p *Plan) accept(data []byte, depth int) bool {
	for len(data) > 0 {
		number, format, rest, ok := cutTag(data)
		f := field{format: none}
		if number < uint(len(p.fields)) {
			f = p.fields[number]
		}
		if !ok || f.format != format && f.format != none {
			return false
		}
		value, rest, ok := cut(rest, format)
		if !ok || f.nested != nil && !f.nested.accepts(value, depth+1) || p.text != nil && f.format != none && !p.text(value) {
			return false
		}
		data = rest
	}
	return true
}

// cutTag splits the tag of a field off, if it has the usual length.
func cutTag(data []byte) (number uint, format byte, rest []byte, ok bool) {
	tag, n := uint(data[0]), 1
	if tag >= 0x80 {
		if len(data) < 2 || data[1] >= 0x80 {
			return 0, 0, nil, false
		}
		tag, n = tag&0x7f|uint(data[1])<<7, 2
	}
	return tag >> 3, byte(tag & 7), data[n:], tag>>3 != 0
}

// cut splits the value of a wire type off.
func cut(data []byte, format byte) (value, rest []byte, ok bool) {
	size := 0
	switch format {
	case wire.Varint:
		for size < len(data) && data[size] >= 0x80 {
			size++
		}
		if size++; size > 10 {
			return nil, nil, false
		}
	case wire.Fixed64:
		size = 8
	case wire.Fixed32:
		size = 4
	case wire.Bytes:
		length, at := 0, 0
		for shift := 0; ; shift += 7 {
			if at == len(data) || shift > 28 {
				return nil, nil, false
			}
			b := data[at]
			at++
			length |= int(b&0x7f) << shift
			if b < 0x80 {
				break
			}
		}
		data, size = data[at:], length
	default:
		return nil, nil, false
	}
	if size > len(data) {
		return nil, nil, false
	}
	return data[:size], data[size:], true
}

// isQuantity accepts the usual quantities: digits, perhaps a fraction, and a suffix.
func isQuantity(text []byte) bool {
	digits, points := 0, 0
	for digits < len(text) && (text[digits] >= '0' && text[digits] <= '9' || text[digits] == '.') {
		if text[digits] == '.' {
			points++
		}
		digits++
	}
	if digits == 0 || digits > 15 || points > 1 || text[0] == '.' || text[digits-1] == '.' {
		return false
	}
	switch string(text[digits:]) {
	case "", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti":
		return true
	}
	return false
}
