package sharing

import (
	"encoding/json"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/wire"
)

// plain decodes the next value as a whole.
func (w *jsonWalk) plain(f *jsonField, into reflect.Value) error {
	w.at.forget(f.number)
	if f.shape == message {
		into.SetZero()
	}
	d := &w.m.doc
	start, depth, raw := d.At, d.Depth, d.Value()
	if len(raw) == 0 {
		return errForm
	}
	if raw[0] != 'n' && w.quick(f, into, raw) {
		d.At = start + len(raw)
		return nil
	}
	d.At, d.Depth = start+len(raw), depth
	into.SetZero()
	if kjson.UnmarshalCaseSensitivePreserveInts(raw, into.Addr().Interface()) != nil {
		return errForm
	}
	trim(into)
	return nil
}

// quick decodes the forms that servers usually write, without a decoder per value. It reports
// whether it could; if not, the content of into means nothing.
func (w *jsonWalk) quick(f *jsonField, into reflect.Value, raw []byte) bool {
	switch f.form {
	case plainForm:
		return setPlain(into, raw)
	case timeForm:
		return setTime(into, raw)
	case ownForm:
		return setOwn(into, raw)
	case stringsForm:
		return w.m.setStrings(into)
	}
	return false
}

// setPlain decodes the usual forms of strings, booleans and integers.
func setPlain(into reflect.Value, raw []byte) bool {
	switch kind := into.Kind(); {
	case kind == reflect.String:
		text, ok := wire.PlainText(raw)
		if ok {
			into.SetString(string(text))
		}
		return ok
	case kind == reflect.Bool:
		if s := string(raw); s == "true" || s == "false" {
			into.SetBool(s == "true")
			return true
		}
	case into.CanInt():
		n, ok := wire.PlainInteger(raw)
		if ok = ok && !into.OverflowInt(n); ok {
			into.SetInt(n)
		}
		return ok
	}
	return false
}

// target is into, or the value that it points to.
func target(into reflect.Value) reflect.Value {
	if into.Kind() != reflect.Pointer {
		return into
	}
	into.Set(reflect.New(into.Type().Elem()))
	return into.Elem()
}

// setTime decodes a time as metav1.Time does.
func setTime(into reflect.Value, raw []byte) bool {
	text, ok := wire.PlainText(raw)
	var t time.Time
	if !ok || t.UnmarshalText(text) != nil {
		return false
	}
	target(into).Addr().Interface().(*metav1.Time).Time = t.Local()
	return true
}

// setOwn decodes a value of a type that decodes itself.
func setOwn(into reflect.Value, raw []byte) bool {
	if _, ok := wire.PlainText(raw); !ok && !json.Valid(raw) {
		return false
	}
	return target(into).Addr().Interface().(json.Unmarshaler).UnmarshalJSON(raw) == nil
}

// setStrings decodes the next value, a map of strings. The names are shared.
func (m *decoder) setStrings(into reflect.Value) bool {
	set, d := map[string]string{}, &m.doc
	err := d.Members('{', '}', func() error {
		name, err := d.Key()
		if err != nil {
			return err
		}
		if d.Peek() != '"' {
			return errForm
		}
		raw := d.Value()
		d.At += len(raw)
		text, ok := wire.PlainText(raw)
		if ok {
			set[m.name(name)] = string(text)
			return nil
		}
		var value string
		if len(raw) == 0 || kjson.UnmarshalCaseSensitivePreserveInts(raw, &value) != nil {
			return errForm
		}
		set[m.name(name)] = value
		return nil
	})
	if err != nil {
		return false
	}
	into.Set(reflect.ValueOf(set))
	return true
}
