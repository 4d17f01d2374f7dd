package collection

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
)

// builtIn are the types of the kinds that client-go has.
var builtIn = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// builtInTypes are builtIn, which takes some 70 ms to make: the first write of a client does it.
type builtInTypes struct{}

// ObjectToTyped implements managedfields.TypeConverter.
func (builtInTypes) ObjectToTyped(obj runtime.Object, o ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return builtIn().ObjectToTyped(obj, o...)
}

// TypedToObject implements managedfields.TypeConverter.
func (builtInTypes) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return builtIn().TypedToObject(value)
}

// oneVersion tells the library that there is nothing to convert.
type oneVersion[T store.Object] struct {
	resource watchcache.Resource[T]
	kind     schema.GroupVersionKind
}

// New implements runtime.ObjectCreater.
func (v oneVersion[T]) New(schema.GroupVersionKind) (runtime.Object, error) {
	obj := v.resource.Empty()
	obj.GetObjectKind().SetGroupVersionKind(v.kind)
	return obj, nil
}

// Default implements runtime.ObjectDefaulter. Defaults are filled in with every write.
func (v oneVersion[T]) Default(runtime.Object) {}

// ConvertToVersion implements runtime.ObjectConvertor: it turns the documents that the library
// makes into a T.
func (v oneVersion[T]) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	obj := v.resource.Empty()
	document, ok := in.(*unstructured.Unstructured)
	if _, documents := any(obj).(*unstructured.Unstructured); documents || !ok {
		return in, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(document.Object, obj); err != nil {
		return nil, err
	}
	return obj, nil
}

// Convert implements runtime.ObjectConvertor.
func (v oneVersion[T]) Convert(any, any, any) error { return errOneVersion }

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (v oneVersion[T]) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errOneVersion
}

var errOneVersion = errors.New("nothing is converted here")
