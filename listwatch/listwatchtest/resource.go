package listwatchtest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// Resource describes a collection: its kind, its rules and its view. [Pods], [Of] and [Custom] make
// one; module crd makes those of definitions.
type Resource[T store.Object] = apiserver.Resource[T]

// Pods describes pods with the API server's rules for them.
func Pods() Resource[*corev1.Pod] { return builtin.Pods() }

// Of describes the built-in kind of a Go type, such as *appsv1.Deployment. It panics if T is none.
func Of[T store.Object]() Resource[T] { return builtin.Of[T]() }

// Custom describes a namespaced custom resource without a schema, as documents or as a Go type. Set
// Kind.ClusterScoped for one without namespaces.
func Custom[T store.Object](kind schema.GroupVersionKind, plural string) Resource[T] {
	return Resource[T]{Kind: watchcache.Kind[T]{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Plural: plural}}
}

// Origin is a collection behind the fake: see [Collection.Origin].
type Origin[T store.Object] = collection.Collection[T]
