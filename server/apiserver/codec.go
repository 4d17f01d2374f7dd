package apiserver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// codec writes objects of one resource in every format.
type codec[T store.Object] struct {
	kind    watchcache.Kind[T]
	columns []Column[T]
	served  schema.GroupVersionKind
	convert func(T) store.Object // to that kind; nil: objects are of it
}

// shown is an object in the version that is served.
func (c codec[T]) shown(obj T) store.Object {
	if c.convert == nil {
		return obj
	}
	return c.convert(obj)
}

// keyOf is the key under which readers of one version and format share encodings.
func (c codec[T]) keyOf(format any) any {
	if c.convert == nil {
		return format
	}
	return versioned{c.served, format}
}

type versioned struct {
	kind   schema.GroupVersionKind
	format any
}

// object is a whole document.
func (c codec[T]) object(f format, obj T) ([]byte, error) {
	kind := typeMeta(f.kindOr(c.served))
	switch f.view {
	case asMetadata:
		return f.document(kind, metadataOf(obj))
	case asTable:
		row, err := c.row(f, obj)
		if err != nil {
			return nil, err
		}
		return f.document(kind, &metav1.Table{
			TypeMeta: kind, ListMeta: metav1.ListMeta{ResourceVersion: obj.GetResourceVersion()},
			ColumnDefinitions: c.definitions(f), Rows: []metav1.TableRow{row},
		})
	}
	return f.document(kind, c.shown(obj))
}

// itemKind is the kind of the encodings of list items: their bytes have no kind of their own.
type itemKind format

// item is an object inside a list.
func (c codec[T]) item(f format, obj T) (any, error) {
	switch f.view {
	case asMetadata:
		return metadataOf(obj), nil
	case asTable:
		return c.row(f, obj)
	}
	return c.shown(obj), nil
}

// list is a list in a format.
func (c codec[T]) list(f format, page watchcache.Page[T]) list {
	encode := func(to []byte, obj T) ([]byte, error) {
		item, err := c.item(f, obj)
		if err != nil {
			return to, err
		}
		return f.appendItem(to, item)
	}
	shared := page
	if f.view == asTable { // rows say how old their objects are now
		shared = watchcache.Page[T]{Objects: page.Objects}
	}
	l := list{
		kind: c.listKind(f), meta: page.Meta, size: len(page.Objects),
		item:   func(i int) (any, error) { return c.item(f, page.Objects[i]) },
		append: func(to []byte, i int) ([]byte, error) { return encode(to, page.Objects[i]) },
		items:  shared.Encode(c.keyOf(itemKind(f)), func(obj T) ([]byte, error) { return encode(nil, obj) }),
	}
	switch f.view {
	case asTable:
		l.columns = c.definitions(f)
	case asItself:
		_, l.untyped = any(c.kind.Empty()).(runtime.Unstructured)
	}
	return l
}

func (c codec[T]) listKind(f format) metav1.TypeMeta {
	kind, apiVersion := f.kindOr(c.served)
	if f.view != asTable {
		kind += "List"
	}
	return typeMeta(kind, apiVersion)
}

func metadataOf(obj metav1.Object) *metav1.PartialObjectMetadata {
	partial := meta.AsPartialObjectMetadata(obj)
	partial.TypeMeta = metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}
	return partial
}

// event is one frame of a watch.
func (c codec[T]) event(f format, e listwatch.Event[T]) ([]byte, error) {
	obj := e.Object
	if e.Type == watch.Bookmark {
		obj = c.kind.Bookmark(e.ResourceVersion, e.InitialEventsEnd)
	}
	doc, err := c.object(f, obj)
	if err != nil {
		return nil, fmt.Errorf("apiserver: encode %s %s: %w", c.kind.Plural, store.KeyOf(obj), err)
	}
	return f.frame(e.Type, doc)
}

// statusDocument is a Status as a whole document.
func statusDocument(f format, status *metav1.Status) ([]byte, error) {
	return f.document(status.TypeMeta, status)
}

// kindOr is the kind and API version of an object in this format.
func (f format) kindOr(kind schema.GroupVersionKind) (name, apiVersion string) {
	switch f.view {
	case asMetadata:
		return "PartialObjectMetadata", metav1.SchemeGroupVersion.String()
	case asTable:
		return "Table", metav1.SchemeGroupVersion.String()
	}
	return kind.Kind, kind.GroupVersion().String()
}

func typeMeta(kind, apiVersion string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: apiVersion}
}
