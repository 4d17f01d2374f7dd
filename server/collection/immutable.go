package collection

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkImmutable: of a ConfigMap or Secret that is immutable, only the metadata may change.
func checkImmutable(next, stored any) (errs field.ErrorList) {
	forbid := func(name string, same bool) {
		if !same {
			errs = append(errs, field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set"))
		}
	}
	frozen := func(immutable *bool) bool { return immutable != nil && *immutable }
	switch stored := stored.(type) {
	case *corev1.ConfigMap:
		if next, ok := next.(*corev1.ConfigMap); ok && frozen(stored.Immutable) {
			forbid("immutable", frozen(next.Immutable))
			forbid("data", apiequality.Semantic.DeepEqual(next.Data, stored.Data))
			forbid("binaryData", apiequality.Semantic.DeepEqual(next.BinaryData, stored.BinaryData))
		}
	case *corev1.Secret:
		if next, ok := next.(*corev1.Secret); ok && frozen(stored.Immutable) {
			forbid("immutable", frozen(next.Immutable))
			forbid("data", apiequality.Semantic.DeepEqual(next.Data, stored.Data))
		}
	}
	return errs
}
