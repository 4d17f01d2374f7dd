package builtin

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
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
}
