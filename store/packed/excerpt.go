package packed

import (
	"reflect"
	"sync"

	"github.com/tributary-go/tributary/internal/checked"
	"github.com/tributary-go/tributary/store"
)

// Read implements [store.Form]: labels and fields are read off the document. An unusual one is
// decoded.
func (k *keeper[T]) Read(entry store.Entry) store.Reading { return &atRest[T]{k, entry.(*cell), nil} }

// atRest reads a cell: a [store.Reading].
type atRest[T store.Object] struct {
	of   *keeper[T]
	cell *cell
	obj  store.Object // once it was opened
}

func (p *atRest[T]) Object() store.Object {
	if p.obj == nil {
		p.obj = p.of.Open(p.cell)
	}
	return p.obj
}

func (p *atRest[T]) Done() {}

func (p *atRest[T]) Labels() (labels map[string]string) {
	if hot := p.cell.hotObject(); hot != nil { // its parts are at hand
		return hot.GetLabels()
	}
	return p.cell.GetLabels()
}

func (p *atRest[T]) Field(path string) (text string) {
	field, ok := p.of.form.fields.of(path), false
	if hot := p.cell.hotObject(); hot != nil {
		return field.Of(hot)
	}
	mustRead(p.cell, p.cell.read(func(document []byte, flags flags) error {
		text, ok = textOf(field, document, flags)
		return nil
	}))
	if !ok {
		return field.Of(p.Object())
	}
	return text
}

// arriving is the object that comes: a [store.Reading].
type arriving[T store.Object] keeper[T]

func (r *arriving[T]) Labels() map[string]string {
	if r.came.obj == nil {
		if labels, ok := labelsOf(r.came.document, r.came.flags); ok {
			return labels
		}
	}
	return r.Object().GetLabels()
}

func (r *arriving[T]) Field(path string) string {
	field := r.form.fields.of(path)
	if r.came.obj == nil {
		if text, ok := textOf(field, r.came.document, r.came.flags); ok {
			return text
		}
	}
	return field.Of(r.Object())
}

func (r *arriving[T]) Object() store.Object {
	if r.came.obj == nil {
		r.came.obj = (*keeper[T])(r).object(r.came)
	}
	return r.came.obj
}

// Done gives the memory of the bytes back.
func (r *arriving[T]) Done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kin.packed(r.came)
	r.came = arrival{}
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
