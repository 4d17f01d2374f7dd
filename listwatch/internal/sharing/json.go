package sharing

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"

	kjson "sigs.k8s.io/json"
)

// jsonPlan says how the JSON objects of one struct type are taken apart. Like a [plan], it is made once per type, by the
// rules of encoding/json.
type jsonPlan struct {
	usable bool // no rule applies that this code does not know
	fields map[string]*jsonField
}

// jsonField is one member of an object.
type jsonField struct {
	index   []int // in the struct, through embedded ones
	number  int   // among the plan's fields
	shape   shape
	elem    reflect.Type
	nested  *jsonPlan
	whole   *site
	each    *site
	isPlain bool // a string, boolean or integer without code of its own
}

// maxJSONFields is how many members an object may have to be taken apart: one bit each. PodSpec has 42.
const maxJSONFields = 64

var (
	jsonUnmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// UnmarshalTyped decodes a JSON object into obj, a pointer to a zero struct, by the rules of sigs.k8s.io/json: names are
// case-sensitive. The error is that package's.
func (m *Memo) UnmarshalTyped(data []byte, obj any) error {
	v := reflect.ValueOf(obj).Elem()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begin(len(data))
	p := m.jsonPlanOf(v.Type())
	if p.usable && m.doc.scan(data) == nil {
		if m.jsonObject(p, v) == nil && m.doc.peek() == 0 && m.doc.at == len(data) {
			return nil
		}
		v.SetZero()
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, obj)
}

// jsonObject decodes the next value, an object, into dst, which is zero. Its only error is errForm.
func (m *Memo) jsonObject(p *jsonPlan, dst reflect.Value) error {
	if !p.usable {
		return errForm
	}
	var seen uint64
	return m.doc.members('{', '}', func() error {
		name, err := m.doc.key()
		if err != nil {
			return err
		}
		raw := m.doc.value()
		if len(raw) == 0 {
			return errForm
		}
		f := p.fields[string(name)]
		if f == nil {
			m.doc.pass(raw)
			if !json.Valid(raw) {
				return errForm
			}
			return nil
		}
		if seen&(1<<f.number) != 0 {
			return errForm // encoding/json decodes the second over the first
		}
		seen |= 1 << f.number
		return m.jsonField(f, dst.FieldByIndex(f.index), raw)
	})
}

// jsonField decodes the next value, raw, into its field.
func (m *Memo) jsonField(f *jsonField, into reflect.Value, raw []byte) error {
	looked := f.whole != nil && raw[0] != 'n' && f.whole.wanted()
	var k key
	if looked {
		if k = m.keyOf(raw); m.find(f.whole, &f.whole.habit, k, len(raw), into) {
			m.doc.pass(raw)
			return nil
		}
	}
	if err := m.jsonDecode(f, into, raw); err != nil {
		return err
	}
	if looked {
		m.keep(f.whole, &f.whole.habit, k, len(raw), into)
	}
	return nil
}

func (m *Memo) jsonDecode(f *jsonField, into reflect.Value, raw []byte) error {
	if f.shape > leaf && f.nested == nil {
		f.nested = m.jsonPlanOf(f.elem)
	}
	switch {
	case f.shape == message && raw[0] == '{':
		return m.jsonObject(f.nested, into)
	case f.shape == pointer && raw[0] == '{':
		into.Set(reflect.New(f.elem))
		return m.jsonObject(f.nested, into.Elem())
	case f.shape == messages && raw[0] == '[':
		return m.jsonElements(f, into)
	}
	m.doc.pass(raw)
	if f.isPlain && setPlain(into, raw) {
		return nil
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(raw, into.Addr().Interface()) != nil {
		return errForm
	}
	return nil
}

func (m *Memo) jsonElements(f *jsonField, into reflect.Value) error {
	into.Set(reflect.MakeSlice(into.Type(), 0, 0)) // what an empty array decodes to
	err := m.doc.members('[', ']', func() error {
		raw := m.doc.value()
		if len(raw) == 0 || raw[0] != '{' {
			return errForm
		}
		n := into.Len()
		if n == into.Cap() {
			into.Grow(1)
		}
		into.SetLen(n + 1)
		elem := into.Index(n)
		looked := f.each.wanted()
		var k key
		if looked {
			if k = m.keyOf(raw); m.find(f.each, &f.each.habit, k, len(raw), elem) {
				m.doc.pass(raw)
				return nil
			}
		}
		if err := m.jsonObject(f.nested, elem); err != nil {
			return err
		}
		if looked {
			m.keep(f.each, &f.each.habit, k, len(raw), elem)
		}
		return nil
	})
	if err == nil && into.Cap() > into.Len() {
		exact := reflect.MakeSlice(into.Type(), into.Len(), into.Len())
		reflect.Copy(exact, into)
		into.Set(exact)
	}
	return err
}

// setPlain decodes the usual forms of strings, booleans and integers.
func setPlain(into reflect.Value, raw []byte) bool {
	switch kind := into.Kind(); {
	case kind == reflect.String:
		text, ok := plainText(raw)
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
		n, ok := plainInteger(raw)
		if ok = ok && !into.OverflowInt(n); ok {
			into.SetInt(n)
		}
		return ok
	}
	return false
}

func (m *Memo) jsonPlanOf(t reflect.Type) *jsonPlan {
	if p := m.structs[t]; p != nil {
		return p
	}
	p := &jsonPlan{fields: map[string]*jsonField{}}
	m.structs[t] = p
	p.usable = isJSONObject(t) && m.addFields(p, t, nil)
	return p
}

// addFields adds the fields of a struct. It reports whether they are of the kinds that this code knows: names that come
// twice, embedded pointers and the "string" option have rules of their own, which are left to encoding/json.
func (m *Memo) addFields(p *jsonPlan, t reflect.Type, at []int) bool {
	for i := range t.NumField() {
		of := t.Field(i)
		tag := of.Tag.Get("json")
		if tag == "-" || !of.IsExported() && !of.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		index := append(append([]int(nil), at...), i)
		switch {
		case strings.Contains(options, "string"):
			return false
		case of.Anonymous && name == "":
			if !of.IsExported() || !isJSONObject(of.Type) || !m.addFields(p, of.Type, index) {
				return false
			}
			continue
		case name == "":
			name = of.Name
		}
		if p.fields[name] != nil || len(p.fields) == maxJSONFields {
			return false
		}
		p.fields[name] = m.jsonFieldOf(of.Type, index, len(p.fields))
	}
	return true
}

func (m *Memo) jsonFieldOf(t reflect.Type, index []int, number int) *jsonField {
	f := &jsonField{index: index, number: number, shape: leaf}
	switch {
	case hasJSONCode(t):
	case isJSONObject(t):
		f.shape, f.elem = message, t
	case t.Kind() == reflect.Pointer && isJSONObject(t.Elem()):
		f.shape, f.elem = pointer, t.Elem()
	case t.Kind() == reflect.Slice && isJSONObject(t.Elem()):
		f.shape, f.elem = messages, t.Elem()
		f.each = m.newSite(f.elem)
	case t.Kind() == reflect.String:
		f.isPlain = true
	case t.Kind() == reflect.Bool || reflect.Zero(t).CanInt():
		f.isPlain, f.shape = true, scalar
	}
	if f.shape != scalar {
		f.whole = m.newSite(t)
	}
	return f
}

// isJSONObject reports whether a type is a struct that encoding/json takes apart by its fields.
func isJSONObject(t reflect.Type) bool { return t.Kind() == reflect.Struct && !hasJSONCode(t) }

// hasJSONCode reports whether a type decodes itself.
func hasJSONCode(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonUnmarshalerType) || p.Implements(textUnmarshalerType)
}
