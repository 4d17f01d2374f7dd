package builtin

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// rules are what the API server does with the writes of a kind, beside pods.
var rules = map[string]watchcache.Rules[store.Object]{
	"Namespace": {
		Default: func(obj store.Object) {
			n := obj.(*corev1.Namespace)
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			n.Labels[corev1.LabelMetadataName] = n.Name
		},
		Complete: func(obj, _ store.Object) {
			if n := obj.(*corev1.Namespace); n.Status.Phase == "" {
				n.Status.Phase = corev1.NamespaceActive
			}
		},
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
		Validate: func(obj, stored store.Object) field.ErrorList {
			if stored == nil {
				return nil
			}
			return validation.ValidateImmutableField(obj.(*corev1.Secret).Type, stored.(*corev1.Secret).Type, field.NewPath("type"))
		},
	},
}
