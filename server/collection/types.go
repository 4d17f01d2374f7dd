package collection

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// oneVersion tells the library that there is nothing to convert.
type oneVersion[T store.Object] struct{ kind watchcache.Kind[T] }

// New implements runtime.ObjectCreater.
func (v oneVersion[T]) New(schema.GroupVersionKind) (runtime.Object, error) {
	obj := v.kind.Empty()
	obj.GetObjectKind().SetGroupVersionKind(v.kind.GroupVersionKind())
	return obj, nil
}

// Default implements runtime.ObjectDefaulter. Defaults are filled in with every write.
func (v oneVersion[T]) Default(runtime.Object) {}

// ConvertToVersion implements runtime.ObjectConvertor: it turns the documents that the library
// makes into a T.
func (v oneVersion[T]) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	obj := v.kind.Empty()
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
