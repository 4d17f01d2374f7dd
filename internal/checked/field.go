package checked

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Field is a text in the objects of one type, by a path of JSON names.
type Field struct {
	names   []string
	numbers []uint // of protobuf; nil if the type has none, as trees
	at      [][]int
}

var (
	trees       = reflect.TypeFor[*unstructured.Unstructured]()
	ownDecoding = reflect.TypeFor[json.Unmarshaler]()
)

// FieldOf finds a field such as spec.nodeName in a type of the API. It fails if there is no such
// field, or if it is no text.
func FieldOf(of reflect.Type, path string) (*Field, error) {
	f := &Field{names: strings.Split(path, ".")}
	if of == trees {
		return f, nil
	}
	at := of
	for i, name := range f.names {
		if at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		if at.Kind() != reflect.Struct || reflect.PointerTo(at).Implements(ownDecoding) {
			return nil, fmt.Errorf("%s has no field %q: %q is no struct", of, path, strings.Join(f.names[:i], "."))
		}
		next, numbers, index := member(at, name)
		if index == nil {
			return nil, fmt.Errorf("%s has no field %q: there is no %q in %s", of, path, name, at)
		}
		f.numbers, f.at = append(f.numbers, numbers...), append(f.at, index)
		at = next
	}
	if at.Kind() == reflect.Pointer {
		at = at.Elem()
	}
	if at.Kind() != reflect.String || reflect.PointerTo(at).Implements(ownDecoding) {
		return nil, fmt.Errorf("the field %q of %s is no text, but a %s", path, of, at)
	}
	return f, nil
}

// member finds a field by its JSON name, also in the structs that JSON has inline. index is nil if
// there is none.
func member(of reflect.Type, name string) (_ reflect.Type, numbers []uint, index []int) {
	for i := range of.NumField() {
		f := of.Field(i)
		number, _ := strconv.ParseUint(tagPart(f.Tag.Get("protobuf"), 1), 10, 32)
		if number == 0 {
			continue
		}
		called := tagPart(f.Tag.Get("json"), 0)
		if called == name {
			return f.Type, []uint{uint(number)}, f.Index
		}
		if called == "" && f.Anonymous && f.Type.Kind() == reflect.Struct {
			if found, more, at := member(f.Type, name); at != nil {
				return found, append([]uint{uint(number)}, more...), append(f.Index, at...)
			}
		}
	}
	return nil, nil, nil
}

func tagPart(tag string, i int) string {
	if parts := strings.Split(tag, ","); i < len(parts) {
		return parts[i]
	}
	return ""
}

// Of reads the field of a decoded object. It is empty if the object has none.
func (f *Field) Of(obj any) string {
	if tree, ok := obj.(*unstructured.Unstructured); ok {
		text, _, _ := unstructured.NestedString(tree.Object, f.names...)
		return text
	}
	at := reflect.ValueOf(obj)
	for _, index := range f.at {
		if at = reflect.Indirect(at); !at.IsValid() {
			return ""
		}
		at = at.FieldByIndex(index)
	}
	if at = reflect.Indirect(at); !at.IsValid() {
		return ""
	}
	return at.String()
}

// Protobuf reads the field of a message that decodes. If ok is false, only decoding can tell it.
func (f *Field) Protobuf(data []byte) (text string, ok bool) {
	if f.numbers == nil {
		return "", false
	}
	ok = textIn(data, f.numbers, &text)
	return text, ok
}

// textIn reads a text by the numbers of its path. Of messages that come twice, the parts are
// merged, and the last text counts.
func textIn(data []byte, numbers []uint, text *string) bool {
	return each(data, numbers[0], func(value []byte) bool {
		if len(numbers) > 1 {
			return textIn(value, numbers[1:], text)
		}
		*text = string(value)
		return true
	})
}

// JSON reads the field of a JSON object that decodes. If ok is false, only decoding can tell it.
func (f *Field) JSON(data []byte) (text string, ok bool) {
	c := checker{data: data, keys: len(f.names)}
	var found []byte
	ok = c.member(1, f.names, &found)
	return string(found), ok
}

// member reads a text by the names of its path.
func (c *checker) member(depth int, names []string, text *[]byte) bool {
	seen := false
	return c.members(depth, func(key []byte) bool {
		switch {
		case string(key) != names[0]:
			return c.value(depth)
		case !c.once(&seen):
			return false
		case len(names) == 1:
			return c.text(text)
		}
		return c.is('{') && c.member(depth+1, names[1:], text)
	})
}
