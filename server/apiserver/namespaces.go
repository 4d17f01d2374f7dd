package apiserver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// namespaces is the resource that says which namespaces there are.
var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

func (e *resourceEndpoint[T]) state(namespace, name string) (found, ending bool) {
	obj, found := e.cache.Snapshot().Get(e.cache.Kind().Key(namespace, name))
	return found, found && obj.GetDeletionTimestamp() != nil
}

// systemNamespaces are there from the start: a real API server makes them itself.
var systemNamespaces = []string{
	metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease,
}

// checkNamespace refuses an object for a namespace that is not there, or is being deleted. A server
// without namespaces takes any.
func (c call) checkNamespace() error {
	name := c.target.Namespace
	if name == "" || slices.Contains(systemNamespaces, name) {
		return nil
	}
	e := c.server.endpoint(namespaces)
	if e == nil {
		return nil
	}
	found, ending := e.state("", name)
	switch {
	case !found:
		return apierrors.NewNotFound(namespaces.GroupResource(), name)
	case ending:
		return apierrors.NewForbidden(c.target.Resource.GroupResource(), c.target.Name,
			fmt.Errorf("unable to create new content in namespace %s because it is being terminated (%s)",
				name, corev1.NamespaceTerminatingCause))
	}
	return nil
}
