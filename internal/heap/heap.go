// Package heap estimates the memory that objects take. It walks them as they come, and counts
// memory that several of them share once.
//
// A size is that of the allocator's class. Of maps it follows from the number of entries, as Go's
// maps grow. The tests compare estimates with what the garbage collector frees.
package heap

import (
	"reflect"
	"unsafe"
)

// walk visits all memory that values refer to.
type walk struct {
	seen   addresses
	visits int // to blocks
	bytes  uint64
}

// block counts a block. It reports whether its content may be new.
func (w *walk) block(at unsafe.Pointer, size uintptr) (descend bool) {
	if at == nil || size == 0 {
		return false
	}
	if w.visits++; !w.seen.add(uintptr(at)) {
		return false
	}
	w.bytes += classOf(size)
	return true
}

// table counts a map, of which nothing is read if it has come before: a program may have it.
func (w *walk) table(at unsafe.Pointer, of reflect.Type, entries func() int) (descend bool) {
	if at == nil {
		return false
	}
	if w.visits++; !w.seen.add(uintptr(at)) {
		return false
	}
	w.bytes += classOf(mapSize(of, entries()))
	return true
}

// value visits the memory behind a value, which itself is counted already.
func (w *walk) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		s := v.String()
		w.block(unsafe.Pointer(unsafe.StringData(s)), uintptr(len(s)))
	case reflect.Pointer:
		if v.Type() == locationType || v.IsNil() {
			return
		}
		of := v.Type().Elem()
		if w.block(v.UnsafePointer(), of.Size()) && refers(of) {
			w.value(v.Elem())
		}
	case reflect.Slice:
		of := v.Type().Elem()
		if w.block(v.UnsafePointer(), uintptr(v.Cap())*of.Size()) && refers(of) {
			w.elements(v)
		}
	case reflect.Array:
		if refers(v.Type()) {
			w.elements(v)
		}
	case reflect.Struct:
		for _, i := range fieldsOf(v.Type()) {
			w.value(v.Field(i))
		}
	case reflect.Interface:
		w.boxed(v)
	case reflect.Map:
		w.entries(v)
	}
}

func (w *walk) elements(v reflect.Value) {
	for i := range v.Len() {
		w.value(v.Index(i))
	}
}

// boxed visits the value of an interface. A value that is no pointer has a block of its own.
func (w *walk) boxed(v reflect.Value) {
	if v.IsNil() {
		return
	}
	in := v.Elem()
	switch in.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		w.value(in)
		return
	case reflect.Bool, reflect.Uint8, reflect.Int8: // the runtime has them
		return
	}
	// All interfaces have two words, the second of which is the address.
	if v.CanAddr() {
		words := (*[2]unsafe.Pointer)(unsafe.Pointer(v.UnsafeAddr()))
		if !w.block(words[1], in.Type().Size()) {
			return
		}
	} else {
		w.bytes += classOf(in.Type().Size())
	}
	w.value(in)
}

// entries visits a map. Trees of unstructured objects and labels are the usual ones, and quicker
// without reflection.
func (w *walk) entries(v reflect.Value) {
	if !w.table(v.UnsafePointer(), v.Type(), v.Len) {
		return
	}
	if v.CanInterface() {
		switch m := v.Interface().(type) {
		case map[string]string:
			for key, value := range m {
				w.text(key)
				w.text(value)
			}
			return
		case map[string]any:
			for key, value := range m {
				w.text(key)
				w.tree(value)
			}
			return
		}
	}
	keys, values := refers(v.Type().Key()), refers(v.Type().Elem())
	for each := v.MapRange(); (keys || values) && each.Next(); {
		w.value(each.Key())
		w.value(each.Value())
	}
}

func (w *walk) text(s string) { w.block(unsafe.Pointer(unsafe.StringData(s)), uintptr(len(s))) }

// tree visits a value of an unstructured object.
func (w *walk) tree(value any) {
	at := (*[2]unsafe.Pointer)(unsafe.Pointer(&value))[1] // as in boxed
	switch in := value.(type) {
	case map[string]any:
		if w.table(at, treeType, func() int { return len(in) }) {
			for key, value := range in {
				w.text(key)
				w.tree(value)
			}
		}
	case string:
		if w.block(at, unsafe.Sizeof(in)) {
			w.text(in)
		}
	case []any:
		if w.block(at, unsafe.Sizeof(in)) && w.block(unsafe.Pointer(unsafe.SliceData(in)), uintptr(cap(in))*unsafe.Sizeof(value)) {
			for _, each := range in {
				w.tree(each)
			}
		}
	case int64, float64:
		w.block(at, 8)
	}
}
