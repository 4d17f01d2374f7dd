package collection

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/server/internal/object"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// ownership keeps metadata.managedFields of a collection, with the API server's own library.
//
// Clients' objects are followed from their creation on, those of the collection's owner
// from the first apply on: until then, its writes cost nothing, and then all that is there
// belongs to "before-first-apply", as with objects that are older than the API server's
// bookkeeping.
type ownership[T store.Object] struct {
	kind          schema.GroupVersionKind
	types         managedfields.TypeConverter
	whole, status *managedfields.FieldManager // for writes of the object, and of its status
}

// unknownManager stands for writers without a name, as in the API server.
const unknownManager = "unknown"

// newOwnership keeps the owners of objects, or of a part of other objects, which subresource names.
func newOwnership[T store.Object](kind watchcache.Kind[T], rules Rules[T], subresource string) (*ownership[T], error) {
	o := &ownership[T]{kind: kind.GroupVersionKind(), types: rules.Types}
	newManager := managedfields.NewDefaultCRDFieldManager
	objects := newConverter(kind, rules)
	if o.types == nil && rules.BuiltIn {
		if types, known := objects.typesOf(o.kind); known {
			o.types, newManager = types, managedfields.NewDefaultFieldManager
		}
	}
	if o.types == nil {
		o.types = managedfields.NewDeducedTypeConverter()
	}
	manager := func(subresource string, resets ...string) (*managedfields.FieldManager, error) {
		filters := filtersOf(newManager)
		for _, version := range append(objects.others(), o.kind.GroupVersion()) {
			exclude(filters, version.String(), resets)
		}
		return newManager(o.types, objects, objects, objects, o.kind, o.kind.GroupVersion(), subresource, filters)
	}
	var err, statusErr error
	if rules.hasStatus(kind) {
		o.whole, err = manager(subresource, statusPath)
	} else {
		o.whole, err = manager(subresource)
	}
	if rules.BuiltIn {
		o.status, statusErr = manager(object.Status.Name(), specPath)
	} else {
		o.status, statusErr = manager(object.Status.Name(), specPath, "metadata")
	}
	return o, errors.Join(err, statusErr)
}

// Writes of the object do not write the status, and the other way round.
var (
	specPath   = object.Spec.Name()
	statusPath = object.Status.Name()
)

// apply is live with what manager applies, and with ownership of it. Errors: Conflict when another
// manager owns a field and says something else, unless force takes it; a 500 without a reason, as
// from the API server, for a configuration that the schema does not allow.
func (o *ownership[T]) apply(live T, applied *unstructured.Unstructured, manager string, force bool, of *managedfields.FieldManager) (T, error) {
	result, err := of.Apply(o.named(live), applied.DeepCopy(), manager, force)
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
	return live, apierror.Unclassified("failed to create typed patch object (%s/%s; %s): %s",
		applied.GetNamespace(), applied.GetName(), o.kind, o.misfit(applied))
}

// misfit says where a configuration does not fit, in the library's words unless they quote values.
func (o *ownership[T]) misfit(applied *unstructured.Unstructured) string {
	_, err := o.types.ObjectToTyped(applied)
	all := reflect.ValueOf(err) // a typed.ValidationErrors
	if !all.IsValid() || all.Kind() != reflect.Slice {
		return "a field has a wrong type"
	}
	var found []string
	for i := range all.Len() {
		path, message := all.Index(i).FieldByName("Path").String(), all.Index(i).FieldByName("ErrorMessage").String()
		why := "wrong type"
		if plainMisfit.MatchString(message) {
			why = message
		}
		found = append(found, path+": "+why)
	}
	return strings.Join(found, "; ")
}

// plainMisfit are the library's words that name types alone.
var plainMisfit = regexp.MustCompile(`^(field not declared in schema|expected [a-z (),]+ got [a-z0-9]+)$`)

// created gives all fields of a new object to manager.
func (o *ownership[T]) created(next T, manager string, nothing T) T {
	return o.given(nothing, next, manager, o.whole)
}

// track gives the fields in which next differs from stored to manager, if stored is followed.
func (o *ownership[T]) track(stored, next T, manager string, of *managedfields.FieldManager) T {
	if len(stored.GetManagedFields()) == 0 {
		next.SetManagedFields(nil)
		return next
	}
	return o.given(stored, next, manager, of)
}

func (o *ownership[T]) given(stored, next T, manager string, of *managedfields.FieldManager) T {
	result, err := of.Update(o.named(stored), o.named(next), manager)
	obj, ok := result.(T)
	if err != nil || !ok { // a wrong type, as in a status that is about to be dropped
		next.SetManagedFields(nil)
		return next
	}
	return obj
}

// keepTimes leaves the times of owners that own the same as before, if nothing else changes either:
// a write that changes nothing is none.
func keepTimes[T store.Object](stored, next T) {
	was, is := stored.GetManagedFields(), next.GetManagedFields()
	if len(was) != len(is) {
		return
	}
	for i := range is {
		entry := is[i]
		entry.Time = was[i].Time
		if !apiequality.Semantic.DeepEqual(entry, was[i]) {
			return
		}
	}
	next.SetManagedFields(was)
	if !apiequality.Semantic.DeepEqual(stored, next) {
		next.SetManagedFields(is)
	}
}

// named is a copy of obj that names its kind and version, as the library wants it.
func (o *ownership[T]) named(obj T) T {
	obj = object.Copy(obj)
	obj.GetObjectKind().SetGroupVersionKind(o.kind)
	return obj
}
