package builtin

import (
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/store"
)

// All describes every built-in kind but pods, which [Pods] describes. The objects are of
// client-go's Go types, but for API services, which are documents.
func All() []apiserver.Resource[store.Object] { return append(kinds(), apiServices()) }

// Of describes the built-in kind of a Go type, such as *appsv1.Deployment. It panics if T is none:
// that is a mistake in the program.
func Of[T store.Object]() apiserver.Resource[T] {
	if pods, ok := any(Pods()).(apiserver.Resource[T]); ok {
		return pods
	}
	for _, r := range kinds() {
		if reflect.TypeOf(r.Kind.Empty()) == reflect.TypeFor[T]() {
			return typed[T](r)
		}
	}
	panic(fmt.Sprintf("builtin: Of: %s is not the Go type of a built-in kind", reflect.TypeFor[T]()))
}

// Serve adds collections of all built-in kinds that the server does not serve yet, pods as
// *corev1.Pod and the others as store.Object: their code is then in the program once, and not once
// for each of some fifty Go types. The namespaces of a new cluster are there.
func Serve(s *apiserver.Server) {
	if pods := Pods(); !s.Serves(pods.Kind.GroupVersionResource()) {
		apiserver.Serve(s, pods)
	}
	for _, r := range All() {
		if s.Serves(r.Kind.GroupVersionResource()) {
			continue
		}
		r.Rules.Versions = slices.DeleteFunc(r.Rules.Versions, func(v collection.Version) bool {
			return s.Serves(v.Kind.GroupVersionResource())
		})
		c := apiserver.Serve(s, r)
		if r.Kind.Kind == "Namespace" {
			if err := CreateNamespaces(c); err != nil {
				panic(err) // the collection is new
			}
		}
	}
}

// CreateNamespaces creates the namespaces of a new cluster, such as default, where they are
// missing.
func CreateNamespaces(namespaces *collection.Collection[store.Object]) error {
	rules := namespaces.Rules()
	for _, name := range systemNamespaces {
		if _, found := namespaces.Snapshot().Get(name); found {
			continue
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		rules.Default(namespace) // not by a client's write, the first of which takes longest
		rules.Complete(namespace, nil)
		if _, err := namespaces.Create(namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// systemNamespaces are those that kube-apiserver makes.
var systemNamespaces = []string{
	metav1.NamespaceDefault, corev1.NamespaceNodeLease, metav1.NamespacePublic, metav1.NamespaceSystem,
}
