package sharing

import (
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// jsonPlan is how the JSON objects of one struct type are taken apart. Like a [plan] it is made
// once per type, by the rules of encoding/json.
type jsonPlan struct {
	usable bool // no rule applies that this code does not know
	fields map[string]*jsonField
	list   []*jsonField // by number
}

// jsonField is one member of an object.
type jsonField struct {
	index   []int // in the struct, through embedded ones
	number  int   // among the plan's fields
	shape   shape
	elem    reflect.Type
	nested  atomic.Pointer[jsonPlan]
	whole   *site
	each    *site
	form    form
	dropped bool // it is passed over
}

// shape is how the value of a member is taken apart.
type shape int

const (
	bare     shape = iota // it lies in the struct itself: nothing to share
	leaf                  // it is decoded as a whole
	message               // taken apart in turn
	pointer               // a pointer to such a message
	messages              // a slice of them
)

// form is how a value is decoded that is not taken apart.
type form int

const (
	anyForm     form = iota // by sigs.k8s.io/json
	plainForm               // a string, boolean or integer without code of its own
	timeForm                // a metav1.Time, or a pointer to one
	ownForm                 // a type, or a pointer to one, that decodes itself
	stringsForm             // a map[string]string
)

// errForm: the input is not of the form that is taken apart. The plain decoder has the last word.
var errForm = errors.New("not of the form that is taken apart")

var (
	jsonUnmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	timeType            = reflect.TypeFor[metav1.Time]()
	stringMapType       = reflect.TypeFor[map[string]string]()
)

// UnmarshalTyped decodes a JSON object into obj, a pointer to a zero struct, by the rules of
// sigs.k8s.io/json: names are case-sensitive. The error is that package's.
func (m *Memo) UnmarshalTyped(data []byte, obj any) error {
	if d := m.take(len(data), true); d != nil {
		done := d.typed(data, reflect.ValueOf(obj).Elem())
		m.giveBack(d)
		if done {
			return nil
		}
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, obj)
}

// typed decodes an object into v, which is zero. It is false, and v still zero, if the form of the
// object or its type is not known here.
func (d *decoder) typed(data []byte, v reflect.Value) bool {
	p := d.jsonPlanOf(v.Type())
	if !p.usable {
		return false
	}
	prev := d.previousOf(p, v.Type(), len(p.fields))
	d.doc.Begin(data)
	ok := d.jsonObject(p, prev.root, v, prev.previous()) == nil && d.doc.Peek() == 0 && d.doc.At == len(data)
	prev.set(v, data, ok && len(data) <= d.limits.alike)
	d.doc.End()
	if !ok {
		v.SetZero()
	}
	return ok
}

func (m *common) jsonPlanOf(t reflect.Type) *jsonPlan {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.structs[t]; p != nil {
		return p
	}
	p := &jsonPlan{fields: map[string]*jsonField{}}
	m.structs[t] = p
	p.usable = isJSONObject(t) && m.addFields(p, t, nil)
	return p
}

// addFields adds the fields of a struct. It reports whether this code knows them all: names that
// come twice, embedded pointers and the "string" option have rules of their own, which are left
// to encoding/json.
func (m *common) addFields(p *jsonPlan, t reflect.Type, at []int) bool {
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
		f := m.jsonFieldOf(of.Type, index, len(p.fields))
		f.dropped = m.drops(t, of.Name)
		p.fields[name] = f
		p.list = append(p.list, f)
	}
	return true
}

func (m *common) jsonFieldOf(t reflect.Type, index []int, number int) *jsonField {
	f := &jsonField{index: index, number: number, shape: leaf}
	pointed := t
	if t.Kind() == reflect.Pointer {
		pointed = t.Elem()
	}
	switch {
	case pointed == timeType:
		f.form = timeForm
	case reflect.PointerTo(pointed).Implements(jsonUnmarshalerType) && pointed.Name() != "" && pointed.Kind() != reflect.Pointer:
		f.form = ownForm
	case hasJSONCode(t):
	case t == stringMapType:
		f.form = stringsForm
	case isJSONObject(t):
		f.shape, f.elem = message, t
	case t.Kind() == reflect.Pointer && isJSONObject(t.Elem()):
		f.shape, f.elem = pointer, t.Elem()
	case t.Kind() == reflect.Slice && isJSONObject(t.Elem()):
		f.shape, f.elem = messages, t.Elem()
		f.each = m.newSite(f.elem)
	case t.Kind() == reflect.String:
		f.form = plainForm
	case t.Kind() == reflect.Bool || reflect.Zero(t).CanInt():
		f.form, f.shape = plainForm, bare
	}
	if f.shape != bare {
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
