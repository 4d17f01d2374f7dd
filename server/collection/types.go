package collection

import (
	"errors"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/tributary-go/tributary/server/internal/fieldtypes"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// converter tells the library of the versions of a kind: a field may have an owner who has written
// it in another version than that of the objects.
type converter[T store.Object] struct {
	kind     watchcache.Kind[T]
	stored   schema.GroupVersion // in which objects are stored
	versions []Version           // the others
}

func newConverter[T store.Object](kind watchcache.Kind[T], rules Rules[T]) converter[T] {
	stored := rules.stored
	if stored.Empty() {
		stored = kind.GroupVersionKind()
	}
	return converter[T]{kind: kind, stored: stored.GroupVersion(), versions: rules.Versions}
}

// New implements runtime.ObjectCreater.
func (v converter[T]) New(schema.GroupVersionKind) (runtime.Object, error) {
	obj := v.kind.Empty()
	obj.GetObjectKind().SetGroupVersionKind(v.kind.GroupVersionKind())
	return obj, nil
}

// Default implements runtime.ObjectDefaulter. Defaults are filled in with every write.
func (v converter[T]) Default(runtime.Object) {}

// ConvertToVersion implements runtime.ObjectConvertor. It also turns the documents that the library
// makes into objects.
func (v converter[T]) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	document, ok := in.(*unstructured.Unstructured)
	if _, documents := any(v.kind.Empty()).(*unstructured.Unstructured); documents {
		return in, nil
	}
	if ok {
		obj := v.empty(document.GroupVersionKind().GroupVersion())
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(document.Object, obj); err != nil {
			return nil, err
		}
		in = obj
	}
	from := in.GetObjectKind().GroupVersionKind().GroupVersion()
	to, ok := target.(schema.GroupVersion)
	if !ok || from == to {
		return in, nil
	}
	return v.convert(in.(store.Object), from, to), nil
}

// empty is an object of a version. An unknown version is read as the objects' own.
func (v converter[T]) empty(of schema.GroupVersion) store.Object {
	own := v.kind.GroupVersionKind().GroupVersion()
	found, known := v.find(of)
	switch {
	case of == own:
	case known:
		return found.Kind.Empty()
	case of == v.stored:
		if version, ok := v.find(own); ok {
			stored := reflect.TypeOf(version.From(version.Kind.Empty()))
			return reflect.New(stored.Elem()).Interface().(store.Object)
		}
	}
	return v.kind.Empty()
}

func (v converter[T]) find(of schema.GroupVersion) (Version, bool) {
	i := slices.IndexFunc(v.versions, func(version Version) bool { return version.Kind.GroupVersionKind().GroupVersion() == of })
	if i < 0 {
		return Version{}, false
	}
	return v.versions[i], true
}

// convert leaves an object as it is if one of the versions is not known.
func (v converter[T]) convert(obj store.Object, from, to schema.GroupVersion) store.Object {
	before, known := v.find(from)
	after, wanted := v.find(to)
	if !known && from != v.stored || !wanted && to != v.stored {
		return obj
	}
	next := obj
	if known {
		next = before.From(next)
	}
	if wanted {
		next = after.To(next)
	}
	next.GetObjectKind().SetGroupVersionKind(to.WithKind(obj.GetObjectKind().GroupVersionKind().Kind))
	return next
}

// Convert implements runtime.ObjectConvertor.
func (v converter[T]) Convert(any, any, any) error { return errNoConversion }

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (v converter[T]) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errNoConversion
}

var (
	errNoConversion = errors.New("only whole objects are converted here")
	errOtherType    = errors.New("the From of a version of the kind makes objects of another Go type than those that are stored")
)

// typesOf are the types of the fields of a built-in kind, as client-go has them.
func (v converter[T]) typesOf(kind schema.GroupVersionKind) (managedfields.TypeConverter, bool) {
	types, known := fieldtypes.For(kind)
	if !known || len(v.versions) == 0 {
		return types, known
	}
	others := map[schema.GroupVersion]managedfields.TypeConverter{}
	for _, other := range v.others() {
		if types, known := fieldtypes.For(other.WithKind(kind.Kind)); known {
			others[other] = types
		}
	}
	return fieldtypes.Choose(func(obj runtime.Object) managedfields.TypeConverter {
		if other, ok := others[obj.GetObjectKind().GroupVersionKind().GroupVersion()]; ok {
			return other
		}
		return types
	}), true
}

// others are the versions that the objects are not in.
func (v converter[T]) others() (all []schema.GroupVersion) {
	own := v.kind.GroupVersionKind().GroupVersion()
	if v.stored != own {
		all = append(all, v.stored)
	}
	for _, version := range v.versions {
		if other := version.Kind.GroupVersionKind().GroupVersion(); other != own {
			all = append(all, other)
		}
	}
	return all
}
