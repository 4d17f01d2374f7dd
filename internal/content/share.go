package content

import (
	"bytes"
	"maps"
	"reflect"
	"sync"
)

// Share lets obj share memory with an object of the same type: each part of obj that equals the
// same part of with becomes with's. From then on, neither may be modified. Both are pointers to
// structs; if their types differ, or one is nil, nothing happens.
//
// The content of obj stays exactly as it was. Nothing but the struct itself is written: memory that
// it refers to may belong to a program, and is copied if a part of it is to be shared.
func Share(obj, with any) {
	o, w := reflect.ValueOf(obj), reflect.ValueOf(with)
	if o.Kind() == reflect.Pointer && w.IsValid() && o.Type() == w.Type() && !o.IsNil() && !w.IsNil() {
		share(o.Elem(), w.Elem())
	}
}

// share replaces parts of v, which it may write, and reports whether it did.
func share(v, with reflect.Value) (shared bool) {
	switch v.Kind() {
	case reflect.Struct:
		if f := formOf(v.Type()); !f.whole {
			for _, i := range f.exported {
				shared = share(v.Field(i), with.Field(i)) || shared
			}
		}
		return shared
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if v.IsNil() || with.IsNil() || v.Pointer() == with.Pointer() {
			return false
		}
	case reflect.Interface:
		if v.IsNil() || with.IsNil() {
			return false
		}
	default:
		return false
	}
	if equalParts(v, with) {
		v.Set(with)
		return true
	}
	own := v // to write into
	switch {
	case v.Kind() == reflect.Pointer:
		own = reflect.New(v.Type().Elem())
		own.Elem().Set(v.Elem())
		shared = share(own.Elem(), with.Elem())
	case v.Kind() == reflect.Slice && mayShare(v.Type().Elem()):
		own = reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		for i := range min(v.Len(), with.Len()) {
			shared = share(own.Index(i), with.Index(i)) || shared
		}
	default:
		var members any
		if members, shared = shareMembers(v.Interface(), with.Interface()); shared {
			own = reflect.ValueOf(members)
		}
	}
	if shared {
		v.Set(own)
	}
	return shared
}

// shareMembers is share for the values of unstructured objects, which are not equal. The result is
// the value to keep.
func shareMembers(v, with any) (own any, shared bool) {
	switch value := v.(type) {
	case map[string]any:
		with, _ := with.(map[string]any)
		own := maps.Clone(value)
		for name, member := range value {
			if other, there := with[name]; there {
				var kept bool
				own[name], kept = shareMember(member, other)
				shared = shared || kept
			}
		}
		return own, shared
	case []any:
		with, _ := with.([]any)
		own := append([]any(nil), value...)
		for i := range min(len(value), len(with)) {
			var kept bool
			own[i], kept = shareMember(value[i], with[i])
			shared = shared || kept
		}
		return own, shared
	}
	return v, false
}

func shareMember(v, with any) (own any, shared bool) {
	switch v.(type) {
	case map[string]any, []any:
		if reflect.DeepEqual(v, with) {
			return with, true
		}
		return shareMembers(v, with)
	}
	return v, false // a text or a number
}

// equalParts is reflect.DeepEqual for addressable values without cycles, which it needs not box. It
// takes different pointers within hidden fields for a difference.
func equalParts(v, with reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		f := formOf(v.Type())
		if f.whole {
			return v.Equal(with)
		}
		for _, i := range f.exported {
			if !equalParts(v.Field(i), with.Field(i)) {
				return false
			}
		}
		return !f.hidden // hidden fields may differ
	case reflect.Pointer:
		return v.Pointer() == with.Pointer() || !v.IsNil() && !with.IsNil() && equalParts(v.Elem(), with.Elem())
	case reflect.Slice:
		if v.Len() != with.Len() || v.IsNil() != with.IsNil() {
			return false
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return bytes.Equal(v.Bytes(), with.Bytes())
		}
		for i := range v.Len() {
			if !equalParts(v.Index(i), with.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if v.Pointer() == with.Pointer() {
			return true
		}
		if m, ok := v.Interface().(map[string]string); ok {
			with := with.Interface().(map[string]string)
			return (m == nil) == (with == nil) && maps.Equal(m, with)
		}
		return reflect.DeepEqual(v.Interface(), with.Interface())
	case reflect.Interface, reflect.Array:
		return reflect.DeepEqual(v.Addr().Interface(), with.Addr().Interface())
	}
	return v.Equal(with)
}

// form is how values of a struct type are compared.
type form struct {
	whole    bool // a value is compared as a whole: nothing in it can be shared
	exported []int
	hidden   bool
}

var forms sync.Map // from reflect.Type to form

func formOf(of reflect.Type) form {
	if known, ok := forms.Load(of); ok {
		return known.(form)
	}
	var f form
	for i := range of.NumField() {
		if of.Field(i).IsExported() {
			f.exported = append(f.exported, i)
		} else {
			f.hidden = true
		}
	}
	f.whole = of.Comparable() && (f.hidden || !mayShare(of))
	forms.Store(of, f)
	return f
}

// mayShare reports whether values of a type can share memory other than that of texts.
func mayShare(of reflect.Type) bool {
	switch of.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		return true
	case reflect.Struct:
		for i := range of.NumField() {
			if mayShare(of.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
