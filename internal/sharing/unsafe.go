package sharing

import (
	"reflect"
	"unsafe"
)

// This is the only file with package unsafe. Reflection finds the offset and the type of each field
// once, when a plan is made. Decoding reads and writes through pointers. The rules:
//
//  1. A ref points to a whole Go value or to a field of one, never past it. It is an
//     unsafe.Pointer and not a uintptr, so the collector sees it.
//  2. An offset comes from reflect.StructField of the very type that the ref points to.
//  3. A value is read and written as a type with the same memory layout: its own type, or the
//     underlying one (a named string as a string, a metav1.Time as a time.Time).
//  4. Memory comes from reflect, with its true type. A struct is copied by reflect, which tells
//     the collector about the pointers in it.
//  5. The header of any slice is read and written as that of a []byte, or its first word as a ref.
//     Its length and capacity count elements, and nothing is read through it.
//  6. Two values are compared as memory only to learn that they are one: equal memory has equal
//     pointers. Values that differ in memory may still be equal.
//
// With -race the tests check pointers too (-d=checkptr).

// ref is a pointer to a value whose type the plan knows.
type ref struct{ p unsafe.Pointer }

func refTo(pointer reflect.Value) ref { return ref{pointer.UnsafePointer()} }

// as is the value, as a type with its memory layout.
func as[T any](r ref) *T { return (*T)(r.p) }

// field is the field at an offset, or the element of an array; nil in nil.
func (r ref) field(offset uintptr) ref {
	if r.p == nil {
		return r
	}
	return ref{unsafe.Add(r.p, offset)}
}

// value is the value, of type t, as reflection has it.
func (r ref) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, r.p).Elem() }

// set copies a value of type t.
func (r ref) set(t reflect.Type, from ref) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map:
		*(*unsafe.Pointer)(r.p) = *(*unsafe.Pointer)(from.p)
	case reflect.Slice:
		*(*[]byte)(r.p) = *(*[]byte)(from.p)
	case reflect.String:
		*(*string)(r.p) = *(*string)(from.p)
	default:
		r.value(t).Set(from.value(t))
	}
}

// isZero reports whether a value of type t is zero. It may be false for an empty text.
func (r ref) isZero(t reflect.Type) bool {
	if size := t.Size(); size <= uintptr(len(zero)) {
		return string(unsafe.Slice((*byte)(r.p), size)) == string(zero[:size])
	}
	return r.value(t).IsZero()
}

var zero [32]byte

// identical reports whether two values of a size are one in memory.
func (r ref) identical(to ref, size uintptr) bool {
	return string(unsafe.Slice((*byte)(r.p), size)) == string(unsafe.Slice((*byte)(to.p), size))
}

// message is the generated code of the struct, of type t.
func (r ref) message(t reflect.Type) unmarshaler {
	return reflect.NewAt(t, r.p).Interface().(unmarshaler)
}

// setSlice makes a slice of n elements, which is also its capacity.
func (r ref) setSlice(first ref, n int) {
	*(*[]byte)(r.p) = unsafe.Slice((*byte)(first.p), n)
}

// trimSlice takes the spare capacity of a slice.
func (r ref) trimSlice() {
	s := as[[]byte](r)
	*s = (*s)[:len(*s):len(*s)]
}
