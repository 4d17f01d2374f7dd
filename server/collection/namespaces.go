package collection

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/store"
)

// Finalize updates a namespace with the finalizers in its spec, as the finalize subresource does. A
// namespace that is being deleted goes with the last finalizer. Errors are those of
// [Collection.Update].
func Finalize[T store.Object](namespaces *Collection[T], given *corev1.Namespace) (T, error) {
	return namespaces.write("", given.Name, func(stored T, found bool) (d Decision[T], err error) {
		if err := namespaces.there(found, given.Name); err != nil {
			return d, err
		}
		namespace := given.DeepCopy()
		next, ok := any(namespace).(T)
		was, known := any(stored).(*corev1.Namespace)
		if !ok || !known {
			return d, fmt.Errorf("a namespace is a %T", stored)
		}
		namespace.Status = was.Status
		namespaces.Kind().SetKind(next)
		namespaces.fill(next)
		if err := namespaces.checkVersion(stored, next, update); err != nil {
			return d, err
		}
		owner := *namespaces // the rules of other updates keep the finalizers
		owner.client = false
		return owner.updated(stored, namespaces.ownership.track(stored, next, namespaces.options.Manager, namespaces.ownership.whole))
	})
}
