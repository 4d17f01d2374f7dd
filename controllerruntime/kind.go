package controllerruntime

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// kind identifies a collection: controller-runtime keeps a kind once for each form that is asked
// for.
type kind struct {
	schema.GroupVersionKind
	form form
}

type form string

const (
	typed    form = "typed"
	document form = "unstructured"
	metadata form = "metadata"
)

func (k kind) String() string {
	return fmt.Sprintf("%s, %s", k.GroupVersionKind, k.form)
}

func (c *Cache) kindOf(obj runtime.Object) (kind, error) {
	gvk, err := apiutil.GVKForObject(obj, c.sources.scheme)
	return kind{gvk, formOf(obj)}, err
}

func formOf(obj runtime.Object) form {
	switch obj.(type) {
	case runtime.Unstructured:
		return document
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return metadata
	}
	return typed
}

// exampleOf returns an empty object of the collection's Go type, which states its kind. The type is
// that of like, or, without one, the scheme's.
func exampleOf(k kind, like runtime.Object, scheme *runtime.Scheme) (client.Object, error) {
	var made runtime.Object
	switch {
	case k.form == document:
		made = &unstructured.Unstructured{}
	case k.form == metadata:
		made = &metav1.PartialObjectMetadata{}
	case like != nil:
		made = reflect.New(reflect.TypeOf(like).Elem()).Interface().(runtime.Object)
	default:
		var err error
		if made, err = scheme.New(k.GroupVersionKind); err != nil {
			return nil, err
		}
	}
	obj, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("controllerruntime: a %T has no metadata", made)
	}
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	return obj, nil
}

func isRoot(mapping *meta.RESTMapping) bool { return mapping.Scope.Name() == meta.RESTScopeNameRoot }
