package collection

import (
	"errors"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/internal/apierror"
	"github.com/tributary-go/tributary/watchcache/internal/object"
)

// ownership keeps metadata.managedFields of a collection, with the API server's own library. It has
// no schema: lists are replaced as a whole, where the API server merges those that have keys.
//
// It follows objects from their first apply on; before, the field is the writers'. What was there
// then belongs to "before-first-apply", as with objects that are older than the API server's own
// bookkeeping. So writes of what nobody applies to cost nothing.
type ownership[T store.Object] struct {
	kind          schema.GroupVersionKind
	whole, status *managedfields.FieldManager // for writes of the object, and of its status
}

// Managers whose names the API server gives.
const (
	unknownManager = "unknown"            // writes without a name
	formerManager  = "before-first-apply" // has written what was there
)

func newOwnership[T store.Object](r watchcache.Resource[T]) (*ownership[T], error) {
	kind := r.GroupVersionKind()
	o := &ownership[T]{kind: kind}
	types, objects := managedfields.NewDeducedTypeConverter(), oneVersion[T]{r, kind}
	var err, statusErr error
	o.whole, err = managedfields.NewDefaultCRDFieldManager(types, objects, objects, objects, kind, kind.GroupVersion(), "", nil)
	o.status, statusErr = managedfields.NewDefaultCRDFieldManager(types, objects, objects, objects, kind, kind.GroupVersion(), object.Status.Name(), nil)
	return o, errors.Join(err, statusErr)
}

// apply is live with what manager applies, and with ownership of it. Error: Conflict where another
// manager owns a field and says something else, unless force takes it.
func (o *ownership[T]) apply(live T, applied *unstructured.Unstructured, manager string, force bool) (T, error) {
	result, err := o.whole.Apply(o.named(live), applied, manager, force)
	if err == nil {
		if obj, ok := result.(T); ok {
			return obj, nil
		}
		err = fmt.Errorf("the result is a %T", result)
	}
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		return live, err
	}
	// err may quote values.
	return live, apierror.BadRequest("the applied configuration does not fit the object")
}

// track gives the fields in which next differs from stored to manager, where ownership of stored is
// kept. It is not for clients to edit.
func (o *ownership[T]) track(stored, next T, manager string, of *managedfields.FieldManager) T {
	if !slices.ContainsFunc(stored.GetManagedFields(), isFollowed) {
		return next
	}
	next.SetManagedFields(stored.GetManagedFields())
	if apiequality.Semantic.DeepEqual(stored, next) {
		return next // with the time of the last write that changed something
	}
	if obj, ok := of.UpdateNoErrors(o.named(stored), o.named(next), manager).(T); ok {
		return obj
	}
	return next
}

// isFollowed reports whether an entry is the work of an apply, and not a field that a writer has
// filled in.
func isFollowed(entry metav1.ManagedFieldsEntry) bool {
	return entry.Operation == metav1.ManagedFieldsOperationApply || entry.Manager == formerManager
}

// named is a copy of obj that says what it is, as the library wants it.
func (o *ownership[T]) named(obj T) T {
	obj = object.Copy(obj)
	obj.GetObjectKind().SetGroupVersionKind(o.kind)
	return obj
}

// oneVersion tells the library that there is nothing to convert and nothing to default.
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

// Default implements runtime.ObjectDefaulter.
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
