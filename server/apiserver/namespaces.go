package apiserver

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/server/collection"
)

// namespaces is the resource that says which namespaces there are.
var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// state reads the cache.
func (e *resourceEndpoint[T]) state(namespace, name string) (found, ending bool) {
	if e.owner != nil {
		return e.owner.state(namespace, name)
	}
	obj, found := e.cache.Snapshot().Get(e.cache.Kind().Key(namespace, name))
	return found, found && obj.GetDeletionTimestamp() != nil
}

// newest reads the storage.
func (e *resourceEndpoint[T]) newest(namespace, name string) (found, ending bool, err error) {
	if e.collection == nil {
		found, ending = e.state(namespace, name)
		return found, ending, nil
	}
	obj, err := e.collection.Get(namespace, name)
	if apierrors.IsNotFound(err) {
		return false, false, nil
	}
	return err == nil, err == nil && obj.GetDeletionTimestamp() != nil, err
}

// systemNamespaces are there from the start: a real API server makes them itself.
var systemNamespaces = []string{
	metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease,
}

// immortalNamespaces cannot be deleted.
var immortalNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}

// checkNamespace refuses an object for a namespace that is not there, or is being deleted. A server
// without namespaces takes any.
func (c call) checkNamespace() error {
	e, name := c.namespaces()
	if e == nil {
		return nil
	}
	found, ending := e.state("", name)
	return c.refuse(name, found, ending)
}

// checkNamespaceAgain refuses an object that has been created while its namespace was being
// deleted, and takes it away: the namespace may have been empty before.
func (c call) checkNamespaceAgain(o collection.WriteOptions, remove func() error) error {
	e, name := c.namespaces()
	if e == nil || o.DryRun {
		return nil
	}
	found, ending, err := e.newest("", name)
	if err != nil {
		return err
	}
	refused := c.refuse(name, found, ending)
	if refused == nil {
		return nil
	}
	if err := remove(); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return refused
}

// namespaces is the endpoint that knows the namespace of the target; nil if any namespace will do.
func (c call) namespaces() (e endpoint, name string) {
	name = c.target.Namespace
	if name == "" || slices.Contains(systemNamespaces, name) {
		return nil, name
	}
	return c.server.endpoint(namespaces), name
}

func (c call) refuse(namespace string, found, ending bool) error {
	switch {
	case !found:
		return apierrors.NewNotFound(namespaces.GroupResource(), namespace)
	case ending:
		err := apierrors.NewForbidden(c.target.Resource.GroupResource(), c.target.Name,
			fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace",
			Message: fmt.Sprintf("namespace %s is being terminated", namespace),
		})
		return err
	}
	return nil
}

// checkDeletion refuses to delete a namespace that a cluster cannot be without.
func (c call) checkDeletion() error {
	if c.target.Resource != namespaces || !slices.Contains(immortalNamespaces, c.target.Name) {
		return nil
	}
	return apierrors.NewForbidden(namespaces.GroupResource(), c.target.Name, errors.New("this namespace may not be deleted"))
}
