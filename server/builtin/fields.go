package builtin

import (
	"cmp"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

type fieldLabel = watchcache.Field[store.Object]

func selectable[T store.Object](label string, value func(T) string) fieldLabel {
	return fieldLabel{Label: label, Value: func(obj store.Object) string { return value(obj.(T)) }}
}

// fields are the field labels of a kind beside its name and namespace.
var fields = map[string][]fieldLabel{
	"CertificateSigningRequest": {
		selectable("spec.signerName", func(c *certificatesv1.CertificateSigningRequest) string { return c.Spec.SignerName }),
	},
	"Event": {
		selectable("involvedObject.kind", func(e *corev1.Event) string { return e.InvolvedObject.Kind }),
		selectable("involvedObject.namespace", func(e *corev1.Event) string { return e.InvolvedObject.Namespace }),
		selectable("involvedObject.name", func(e *corev1.Event) string { return e.InvolvedObject.Name }),
		selectable("involvedObject.uid", func(e *corev1.Event) string { return string(e.InvolvedObject.UID) }),
		selectable("involvedObject.apiVersion", func(e *corev1.Event) string { return e.InvolvedObject.APIVersion }),
		selectable("involvedObject.resourceVersion", func(e *corev1.Event) string { return e.InvolvedObject.ResourceVersion }),
		selectable("involvedObject.fieldPath", func(e *corev1.Event) string { return e.InvolvedObject.FieldPath }),
		selectable("reason", func(e *corev1.Event) string { return e.Reason }),
		selectable("reportingComponent", func(e *corev1.Event) string { return cmp.Or(e.Source.Component, e.ReportingController) }),
		selectable("source", func(e *corev1.Event) string { return cmp.Or(e.Source.Component, e.ReportingController) }),
		selectable("type", func(e *corev1.Event) string { return e.Type }),
	},
	"Job":       {selectable("status.successful", func(j *batchv1.Job) string { return fmt.Sprint(j.Status.Succeeded) })},
	"Namespace": {selectable("status.phase", func(n *corev1.Namespace) string { return string(n.Status.Phase) })},
	"Node": {selectable("spec.unschedulable", func(n *corev1.Node) string {
		return fmt.Sprint(n.Spec.Unschedulable)
	})},
	"ReplicationController": {selectable("status.replicas", func(r *corev1.ReplicationController) string { return fmt.Sprint(r.Status.Replicas) })},
	"ResourceSlice": {
		selectable(resourcev1.ResourceSliceSelectorNodeName, func(s *resourcev1.ResourceSlice) string { return value(s.Spec.NodeName) }),
		selectable(resourcev1.ResourceSliceSelectorDriver, func(s *resourcev1.ResourceSlice) string { return s.Spec.Driver }),
	},
	"Secret": {selectable("type", func(s *corev1.Secret) string { return string(s.Type) })},
	"Service": {
		selectable("spec.clusterIP", func(s *corev1.Service) string { return s.Spec.ClusterIP }),
		selectable("spec.type", func(s *corev1.Service) string { return string(s.Spec.Type) }),
	},
}
