package packed

import (
	"reflect"
	"sync"

	"github.com/tributary-go/tributary/internal/checked"
	"github.com/tributary-go/tributary/store"
)

// excerpt reads parts of an object off its document. An unusual document is decoded.
type excerpt[T store.Object] struct {
	of   *Store[T]
	read func(use func(document []byte, flags flags) error) error // nil if open costs nothing
	open func() T
}

// parts are those of a cell.
func (s *Store[T]) parts(entry store.Object) store.Parts {
	c := entry.(*cell)
	if hot := c.hot.Load(); hot != nil { // its parts are at hand
		return &excerpt[T]{of: s, open: func() T { return hot.obj.(T) }}
	}
	return &excerpt[T]{s, c.read, func() T { return s.open(c) }}
}

func (p *excerpt[T]) Labels() (labels map[string]string) {
	if !p.usual(func(document []byte, flags flags) (ok bool) {
		labels, ok = labelsOf(document, flags)
		return ok
	}) {
		return p.open().GetLabels()
	}
	return labels
}

func (p *excerpt[T]) Field(path string) (text string) {
	field := p.of.form.fields.of(path)
	if !p.usual(func(document []byte, flags flags) (ok bool) { text, ok = textOf(field, document, flags); return ok }) {
		return field.Of(p.open())
	}
	return text
}

// usual reports whether a part was read off the document.
func (p *excerpt[T]) usual(read func(document []byte, flags flags) bool) (ok bool) {
	if p.read == nil {
		return false
	}
	err := p.read(func(document []byte, flags flags) error { ok = read(document, flags); return nil })
	return ok && err == nil
}

// labelsOf reads the labels of a document. If it reports false, only decoding can tell.
func labelsOf(document []byte, f flags) (labels map[string]string, ok bool) {
	if f&flagJSON != 0 {
		return checked.JSONLabels(document)
	}
	_, _, message, err := cutHead(document, f)
	if err != nil {
		return nil, false
	}
	return checked.Labels(message)
}

// textOf reads a field of a document, as labelsOf does.
func textOf(field *checked.Field, document []byte, f flags) (text string, ok bool) {
	if f&flagJSON != 0 {
		return field.JSON(document)
	}
	_, _, message, err := cutHead(document, f)
	if err != nil {
		return "", false
	}
	return field.Protobuf(message)
}

// fields are those of a type that were asked for, by path.
type fields struct {
	typ   reflect.Type
	known sync.Map
}

// of panics on a path that [store.ByField] refuses.
func (f *fields) of(path string) *checked.Field {
	if known, ok := f.known.Load(path); ok {
		return known.(*checked.Field)
	}
	field, err := checked.FieldOf(f.typ, path)
	if err != nil {
		panic("packed: " + err.Error())
	}
	f.known.Store(path, field)
	return field
}
