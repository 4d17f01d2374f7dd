package content

import (
	"bytes"
	"reflect"
	"sync"
	"unsafe"
)

// Equal reports whether two objects have the same content. It is exact: an empty list is not an
// absent one. Memory that both share is compared by address. The result is that of
// [reflect.DeepEqual], at a tenth of its time: each type is looked at once per process.
func Equal(a, b any) bool { return equalAny(a, b, 0) }

// comparer compares two values of one type in memory. depth is the number of pointers, lists, maps
// and interfaces above them.
type comparer func(a, b unsafe.Pointer, depth int) bool

// maxDepth is where reflect takes over, which finds its way out of a cycle. API objects are trees
// of less depth.
const maxDepth = 200

var comparers sync.Map // of reflect.Type to comparer

// comparerOf returns the comparer of a type. Types may contain themselves, so that parts are looked
// up when they are first met.
func comparerOf(t reflect.Type) comparer {
	if known, ok := comparers.Load(t); ok {
		return known.(comparer)
	}
	made, _ := comparers.LoadOrStore(t, newComparer(t))
	return made.(comparer)
}

func newComparer(t reflect.Type) comparer {
	switch t.Kind() {
	case reflect.Bool, reflect.Int8, reflect.Uint8:
		return equalAs[uint8]
	case reflect.Int16, reflect.Uint16:
		return equalAs[uint16]
	case reflect.Int32, reflect.Uint32:
		return equalAs[uint32]
	case reflect.Int64, reflect.Uint64:
		return equalAs[uint64]
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		return equalAs[uint]
	case reflect.Float64:
		return equalAs[float64]
	case reflect.String:
		return equalAs[string]
	case reflect.Pointer:
		return pointerComparer(t.Elem())
	case reflect.Struct:
		return structComparer(t)
	case reflect.Slice:
		return sliceComparer(t.Elem())
	case reflect.Map:
		return mapComparer(t)
	case reflect.Interface:
		return func(a, b unsafe.Pointer, depth int) bool {
			return equalAny(reflect.NewAt(t, a).Elem().Interface(), reflect.NewAt(t, b).Elem().Interface(), depth+1)
		}
	}
	return func(a, b unsafe.Pointer, _ int) bool {
		return reflect.DeepEqual(reflect.NewAt(t, a).Interface(), reflect.NewAt(t, b).Interface())
	}
}

func equalAs[V comparable](a, b unsafe.Pointer, _ int) bool { return *(*V)(a) == *(*V)(b) }

func pointerComparer(elem reflect.Type) comparer {
	of := sync.OnceValue(func() comparer { return comparerOf(elem) })
	return func(a, b unsafe.Pointer, depth int) bool {
		p, q := *(*unsafe.Pointer)(a), *(*unsafe.Pointer)(b)
		switch {
		case p == q:
			return true
		case p == nil || q == nil:
			return false
		case depth > maxDepth:
			return reflect.DeepEqual(reflect.NewAt(elem, p).Interface(), reflect.NewAt(elem, q).Interface())
		}
		return of()(p, q, depth+1)
	}
}

func structComparer(t reflect.Type) comparer {
	type field struct {
		offset uintptr
		equal  comparer
	}
	fields := make([]field, t.NumField())
	for i := range fields {
		fields[i] = field{t.Field(i).Offset, comparerOf(t.Field(i).Type)}
	}
	return func(a, b unsafe.Pointer, depth int) bool {
		for i := range fields {
			f := &fields[i]
			if !f.equal(unsafe.Add(a, f.offset), unsafe.Add(b, f.offset), depth) {
				return false
			}
		}
		return true
	}
}

func sliceComparer(elem reflect.Type) comparer {
	of := sync.OnceValue(func() comparer { return comparerOf(elem) })
	size := elem.Size()
	return func(a, b unsafe.Pointer, depth int) bool {
		x, y := *(*[]byte)(a), *(*[]byte)(b) // of any slice: its address and length
		p, q := unsafe.Pointer(unsafe.SliceData(x)), unsafe.Pointer(unsafe.SliceData(y))
		switch {
		case (x == nil) != (y == nil) || len(x) != len(y):
			return false
		case len(x) == 0 || p == q:
			return true
		case elem.Kind() == reflect.Uint8:
			return bytes.Equal(x, y)
		case depth > maxDepth:
			list := reflect.SliceOf(elem)
			return reflect.DeepEqual(reflect.NewAt(list, a).Elem().Interface(), reflect.NewAt(list, b).Elem().Interface())
		}
		equal := of()
		for i := range len(x) {
			if !equal(unsafe.Add(p, uintptr(i)*size), unsafe.Add(q, uintptr(i)*size), depth+1) {
				return false
			}
		}
		return true
	}
}

func mapComparer(t reflect.Type) comparer {
	switch t {
	case reflect.TypeFor[map[string]string]():
		return func(a, b unsafe.Pointer, depth int) bool {
			return equalMaps(*(*map[string]string)(a), *(*map[string]string)(b), depth, func(v, w string, _ int) bool { return v == w })
		}
	case reflect.TypeFor[map[string]any]():
		return func(a, b unsafe.Pointer, depth int) bool {
			return equalMaps(*(*map[string]any)(a), *(*map[string]any)(b), depth, equalAny)
		}
	}
	elem := t.Elem()
	of := sync.OnceValue(func() comparer { return comparerOf(elem) })
	return func(a, b unsafe.Pointer, depth int) bool {
		x, y := reflect.NewAt(t, a).Elem(), reflect.NewAt(t, b).Elem()
		switch {
		case x.IsNil() != y.IsNil() || x.Len() != y.Len():
			return false
		case x.Len() == 0 || x.UnsafePointer() == y.UnsafePointer():
			return true
		case depth > maxDepth:
			return reflect.DeepEqual(x.Interface(), y.Interface())
		}
		v, w, equal := reflect.New(elem), reflect.New(elem), of()
		for all := x.MapRange(); all.Next(); {
			other := y.MapIndex(all.Key())
			if !other.IsValid() {
				return false
			}
			v.Elem().SetIterValue(all)
			w.Elem().Set(other)
			if !equal(v.UnsafePointer(), w.UnsafePointer(), depth+1) {
				return false
			}
		}
		return true
	}
}

func equalMaps[V any](x, y map[string]V, depth int, equal func(v, w V, depth int) bool) bool {
	switch {
	case (x == nil) != (y == nil) || len(x) != len(y):
		return false
	case *(*unsafe.Pointer)(unsafe.Pointer(&x)) == *(*unsafe.Pointer)(unsafe.Pointer(&y)):
		return true
	case depth > maxDepth:
		return reflect.DeepEqual(x, y)
	}
	for key, v := range x {
		if w, ok := y[key]; !ok || !equal(v, w, depth+1) {
			return false
		}
	}
	return true
}

// equalAny compares values in interfaces; first those that JSON has.
func equalAny(a, b any, depth int) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case string:
		y, ok := b.(string)
		return ok && x == y
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case int64:
		y, ok := b.(int64)
		return ok && x == y
	case float64:
		y, ok := b.(float64)
		return ok && x == y
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && equalMaps(x, y, depth, equalAny)
	case []any:
		y, ok := b.([]any)
		return ok && comparerOf(reflect.TypeFor[[]any]())(unsafe.Pointer(&x), unsafe.Pointer(&y), depth)
	}
	t := reflect.TypeOf(a)
	if t != reflect.TypeOf(b) {
		return false
	}
	if t.Kind() != reflect.Pointer {
		return reflect.DeepEqual(a, b)
	}
	p, q := reflect.ValueOf(a).UnsafePointer(), reflect.ValueOf(b).UnsafePointer()
	return comparerOf(t)(unsafe.Pointer(&p), unsafe.Pointer(&q), depth)
}
