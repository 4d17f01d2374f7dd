// Package content compares API objects by their content.
package content

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Difference returns the first field in which two objects differ, by its names in JSON:
// metadata.labels[app], spec.containers[0].image. It is empty if the objects are equal, or of
// different types.
func Difference(a, b any) string {
	if Equal(a, b) {
		return ""
	}
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if u, ok := a.(*unstructured.Unstructured); ok {
		if other, ok := b.(*unstructured.Unstructured); ok && u != nil && other != nil {
			x, y = reflect.ValueOf(u.Object), reflect.ValueOf(other.Object)
		}
	}
	return strings.TrimPrefix(differenceAt("", x, y), ".")
}

// differenceAt goes down into values that are not deeply equal.
func differenceAt(path string, a, b reflect.Value) string {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return path
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !a.IsNil() && !b.IsNil() {
			return differenceAt(path, a.Elem(), b.Elem())
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if of := a.Type().Field(i); of.IsExported() && !equal(a.Field(i), b.Field(i)) {
				return differenceAt(path+memberName(of), a.Field(i), b.Field(i))
			}
		}
	case reflect.Slice:
		for i := range min(a.Len(), b.Len()) {
			if !equal(a.Index(i), b.Index(i)) {
				return differenceAt(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))
			}
		}
	case reflect.Map:
		return differenceOfMaps(path, a, b)
	}
	return path
}

// differenceOfMaps writes the keys of data in brackets, and those of an unstructured object as
// fields.
func differenceOfMaps(path string, a, b reflect.Value) string {
	if a.IsNil() != b.IsNil() {
		return path
	}
	var keys []string
	for _, m := range []reflect.Value{a, b} {
		for _, key := range m.MapKeys() {
			if key.Kind() != reflect.String {
				return path
			}
			keys = append(keys, key.String())
		}
	}
	sort.Strings(keys)
	for _, key := range keys {
		k := reflect.ValueOf(key).Convert(a.Type().Key())
		x, y := a.MapIndex(k), b.MapIndex(k)
		if x.IsValid() && y.IsValid() && equal(x, y) {
			continue
		}
		if a.Type().Elem().Kind() == reflect.Interface {
			return differenceAt(path+"."+key, x, y)
		}
		return differenceAt(path+"["+key+"]", x, y)
	}
	return path
}

func equal(a, b reflect.Value) bool { return reflect.DeepEqual(a.Interface(), b.Interface()) }

// memberName is a field's name in JSON, after a dot; nothing where it is inlined.
func memberName(of reflect.StructField) string {
	name, _, _ := strings.Cut(of.Tag.Get("json"), ",")
	switch {
	case name != "":
		return "." + name
	case of.Anonymous:
		return ""
	}
	return "." + of.Name
}
