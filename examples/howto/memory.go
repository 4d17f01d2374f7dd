package howto

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/refs"
	"github.com/tributary-go/tributary/store/packed"
)

// Interned is the default: equal parts of objects are held once.
func Interned(client rest.Interface) *informer.Informer[*corev1.Pod] {
	return informer.New(listwatch.FromClient[corev1.Pod](client, "pods", listwatch.DropManagedFields()))
}

// Metadata holds names, labels, annotations and owners alone.
func Metadata(client rest.Interface) *informer.Informer[*metav1.PartialObjectMetadata] {
	return informer.New(listwatch.FromClient[metav1.PartialObjectMetadata](client, "pods"))
}

// Projected holds the parts of each pod that are read.
func Projected(client rest.Interface) *informer.Informer[*corev1.Pod] {
	whole := listwatch.FromClient[corev1.Pod](client, "pods", listwatch.DropManagedFields())
	return informer.New(listwatch.Project(whole, func(p *corev1.Pod) *corev1.Pod {
		small := &corev1.Pod{Spec: corev1.PodSpec{NodeName: p.Spec.NodeName}}
		small.Namespace, small.Name, small.UID = p.Namespace, p.Name, p.UID // the identity stays
		small.ResourceVersion, small.Labels = p.ResourceVersion, p.Labels
		return small
	}))
}

// Packed holds bytes, and decodes the objects that are read or told.
func Packed(client rest.Interface) *informer.Informer[*corev1.Pod] {
	source := listwatch.FromClient[corev1.Pod](client, "pods", listwatch.DropManagedFields())
	return informer.New(source, informer.WithStore(packed.New[corev1.Pod]))
}

// Referred holds the Secrets that the pods mention, and no others.
func Referred(client rest.Interface, pods *informer.Informer[*corev1.Pod]) *refs.Refs[*corev1.Secret] {
	secrets := refs.FromClient[corev1.Secret](client, "secrets")
	return refs.New(secrets, refs.FromOwners(pods, refs.SecretsOf))
}
