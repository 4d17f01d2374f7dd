package builtin

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// orElse is the text of a value or, if that is empty or a nil pointer, another one.
func orElse(instead string, value any) string { return cmp.Or(textOf(value), instead) }

// textOf is a value, or the value behind a pointer, as fmt.Sprint writes it; empty for nil.
func textOf(value any) string {
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		if text, ok := value.(fmt.Stringer); ok {
			return text.String()
		}
		v = v.Elem()
	}
	return fmt.Sprint(v.Interface())
}

// elementsOf yields the elements of a list, and those that where has found.
func elementsOf(list any) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) {
		for _, element := range reflect.ValueOf(list).Seq2() {
			if element.Kind() == reflect.Interface {
				element = element.Elem()
			}
			if !yield(element) {
				return
			}
		}
	}
}

// where are the elements of a list with a value in a field; nil if there are none.
func where(field, value string, list any) (found []any) {
	for element := range elementsOf(list) {
		if textOf(element.FieldByName(field).Interface()) == value {
			found = append(found, element.Interface())
		}
	}
	return found
}

// each has a field of all elements of a list.
func each(field string, list any) (texts []string) {
	for element := range elementsOf(list) {
		texts = append(texts, textOf(element.FieldByName(field).Interface()))
	}
	return texts
}

func join(separator string, list any) string {
	var texts []string
	for element := range elementsOf(list) {
		texts = append(texts, textOf(element.Interface()))
	}
	return strings.Join(texts, separator)
}

// first joins some texts, and counts the others.
func first(texts []string, some int, separator string) string {
	if len(texts) <= some {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(texts[:some], separator), len(texts)-some)
}

// value is the value at p, or zero if p is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// title is a bool as some columns of the API server have it.
func title(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

func seconds(n int32) string { return duration.HumanDuration(time.Duration(n) * time.Second) }

// since is how long ago the first of some times was that is known.
func since(times ...any) string {
	for _, at := range times {
		var t time.Time
		switch at := at.(type) {
		case metav1.Time:
			t = at.Time
		case *metav1.Time:
			t = at.Time
		case metav1.MicroTime:
			t = at.Time
		}
		if !t.IsZero() {
			return duration.HumanDuration(time.Since(t))
		}
	}
	return unknown
}
