package builtin

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/store"
)

// rules are the API server's rules for writes of a kind; pods have theirs in a file of their own.
var rules = map[string]collection.Rules[store.Object]{
	"ConfigMap": {Validate: func(obj, stored store.Object) field.ErrorList {
		if stored == nil || !frozen(stored.(*corev1.ConfigMap).Immutable) {
			return nil
		}
		is, was := obj.(*corev1.ConfigMap), stored.(*corev1.ConfigMap)
		return slices.Concat(keeps("immutable", frozen(is.Immutable), true), keeps("data", is.Data, was.Data),
			keeps("binaryData", is.BinaryData, was.BinaryData))
	}},
	"HorizontalPodAutoscaler": {Default: defaultAutoscaler},
	"Namespace": {
		Default: func(obj store.Object) {
			n := obj.(*corev1.Namespace)
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			n.Labels[corev1.LabelMetadataName] = n.Name
		},
		Complete: func(obj, stored store.Object) {
			n := obj.(*corev1.Namespace)
			if n.Status.Phase == "" {
				n.Status.Phase = corev1.NamespaceActive
			}
			if stored != nil { // the finalize subresource writes them
				n.Spec.Finalizers = stored.(*corev1.Namespace).Spec.Finalizers
			} else if !slices.Contains(n.Spec.Finalizers, corev1.FinalizerKubernetes) {
				n.Spec.Finalizers = append(n.Spec.Finalizers, corev1.FinalizerKubernetes)
			}
		},
		Delete: func(obj store.Object) {
			n := obj.(*corev1.Namespace)
			if n.Status.Phase == "" { // stored by its owner as it was
				n.Spec.Finalizers = append(slices.Clone(n.Spec.Finalizers), corev1.FinalizerKubernetes)
			}
			now := metav1.NewTime(time.Now().Truncate(time.Second))
			n.DeletionTimestamp, n.Status.Phase = &now, corev1.NamespaceTerminating
		},
		Validate: func(obj, stored store.Object) field.ErrorList {
			is := obj.(*corev1.Namespace)
			phase := corev1.NamespaceActive
			if is.DeletionTimestamp != nil {
				phase = corev1.NamespaceTerminating
			}
			if stored == nil || is.Status.Phase == stored.(*corev1.Namespace).Status.Phase || is.Status.Phase == phase {
				return nil
			}
			return field.ErrorList{field.Invalid(field.NewPath("status", "Phase"), is.Status.Phase,
				"may only be Terminating while the namespace is being deleted")}
		},
		Held: func(obj store.Object) bool { return len(obj.(*corev1.Namespace).Spec.Finalizers) > 0 },
	},
	"Secret": {
		Default: func(obj store.Object) {
			s := obj.(*corev1.Secret)
			if s.Type == "" {
				s.Type = corev1.SecretTypeOpaque
			}
			for key, text := range s.StringData {
				if s.Data == nil {
					s.Data = map[string][]byte{}
				}
				s.Data[key] = []byte(text)
			}
			s.StringData = nil
		},
		Validate: func(obj, stored store.Object) (errs field.ErrorList) {
			if stored == nil {
				return nil
			}
			is, was := obj.(*corev1.Secret), stored.(*corev1.Secret)
			if frozen(was.Immutable) {
				errs = slices.Concat(keeps("immutable", frozen(is.Immutable), true), keeps("data", is.Data, was.Data))
			}
			return append(errs, validation.ValidateImmutableField(is.Type, was.Type, field.NewPath("type"))...)
		},
	},
}

// frozen reports whether a ConfigMap or a Secret may change in its metadata alone.
func frozen(immutable *bool) bool { return immutable != nil && *immutable }

// keeps refuses to change a field of an object that is frozen.
func keeps(name string, is, was any) field.ErrorList {
	if apiequality.Semantic.DeepEqual(is, was) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set")}
}
