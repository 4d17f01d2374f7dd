package collection

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The checks are those of the API server, with its own library: the fields that an error names are
// those that it names there.

var metaPath = field.NewPath("metadata")

// validName refuses the names that the kind does not allow.
func (c *Collection[T]) validName() validation.ValidateNameFunc {
	if c.rules.ValidName != nil {
		return c.rules.ValidName
	}
	return validation.NameIsDNSSubdomain
}

// checkNew returns the faults of an object that is to be created.
func (c *Collection[T]) checkNew(obj T) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessor(obj, !c.Kind().ClusterScoped, c.validName(), metaPath)
	errs = append(errs, c.checkFinalizers(obj)...)
	var none T
	if validate := c.clientRules().Validate; validate != nil {
		errs = append(errs, validate(obj, none)...)
	}
	return errs
}

// checkNext returns the faults of the next state of an object.
func (c *Collection[T]) checkNext(next, stored T) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessor(next, !c.Kind().ClusterScoped, path.ValidatePathSegmentName, metaPath)
	errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(next, stored, metaPath)...)
	errs = append(errs, c.checkFinalizers(next)...)
	if validate := c.clientRules().Validate; validate != nil {
		errs = append(errs, validate(next, stored)...)
	}
	return errs
}

// checkFinalizers: those of a built-in kind have a domain, unless they are the server's own.
func (c *Collection[T]) checkFinalizers(obj T) (errs field.ErrorList) {
	if !c.rules.BuiltIn || c.rules.PlainFinalizers {
		return nil
	}
	for i, finalizer := range obj.GetFinalizers() {
		if !strings.Contains(finalizer, "/") && !slices.Contains(plainFinalizers, finalizer) {
			errs = append(errs, field.Invalid(metaPath.Child("finalizers").Index(i), finalizer,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// warnOfFinalizers warns of new finalizers of a custom resource that other writers may have, too.
func (c *Collection[T]) warnOfFinalizers(obj, stored metav1.Object) {
	if c.rules.BuiltIn || !c.client {
		return
	}
	added := sets.New(obj.GetFinalizers()...)
	if stored != nil {
		added.Delete(stored.GetFinalizers()...)
	}
	for _, finalizer := range sets.List(added) {
		switch {
		case strings.Contains(finalizer, "/") || slices.Contains(plainFinalizers, finalizer):
		case strings.Contains(finalizer, "."):
			c.warn(fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name including a path (/) "+
				"to avoid accidental conflicts with other finalizer writers", finalizer))
		default:
			c.warn(fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name to avoid accidental "+
				"conflicts with other finalizer writers", finalizer))
		}
	}
}

// plainFinalizers need no domain.
var plainFinalizers = []string{
	string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents,
}

func needsVersion() field.ErrorList {
	return field.ErrorList{field.Invalid(metaPath.Child("resourceVersion"), 0, "must be specified for an update")}
}

// invalid is the 422 for the faults of an object, or nil without any.
func (c *Collection[T]) invalid(obj T, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(c.Kind().GroupVersionKind().GroupKind(), obj.GetName(), distinct(errs))
}

// distinct leaves one of the errors that say the same: metadata is checked by more than one rule.
func distinct(errs field.ErrorList) (kept field.ErrorList) {
	seen := map[string]bool{}
	for _, err := range errs {
		if key := fmt.Sprint(err.Type, err.Field, err.Detail); !seen[key] {
			seen[key] = true
			kept = append(kept, err)
		}
	}
	return kept
}
