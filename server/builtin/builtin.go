package builtin

import (
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/internal/object"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// All describes every built-in kind but pods, which [watchcache.Pods] describes. The objects are of
// client-go's Go types.
func All() []watchcache.Resource[store.Object] {
	all := make([]watchcache.Resource[store.Object], 0, len(kinds))
	for _, k := range kinds {
		all = append(all, k.resource())
	}
	return all
}

// Of describes the built-in kind of a Go type, such as *appsv1.Deployment. It panics if T is none:
// that is a mistake in the program.
func Of[T store.Object]() watchcache.Resource[T] {
	if pods, ok := any(watchcache.Pods()).(watchcache.Resource[T]); ok {
		return pods
	}
	empty := object.New[T]()
	gvks, _, _ := scheme.Scheme.ObjectKinds(empty) // none if the scheme does not know the type
	for _, k := range kinds {
		if r := k.resource(); slices.Contains(gvks, r.GroupVersionKind()) {
			return typedAs[T](r)
		}
	}
	panic(fmt.Sprintf("builtin: Of: %T is not the Go type of a built-in kind", empty))
}

// Serve adds collections of all built-in kinds that the server does not serve yet, pods as
// *corev1.Pod and the others as store.Object: their code is then in the program once, and not once
// for each of some fifty Go types. The namespaces of a new cluster are there.
func Serve(s *apiserver.Server) {
	if pods := watchcache.Pods(); !s.Serves(pods.GroupVersionResource()) {
		apiserver.Serve(s, pods)
	}
	for _, r := range All() {
		if s.Serves(r.GroupVersionResource()) {
			continue
		}
		c := apiserver.Serve(s, r)
		if r.Kind != "Namespace" {
			continue
		}
		for _, name := range systemNamespaces {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			r.Rules.Default(namespace) // not by a client's write, the first of which takes longest
			r.Rules.Complete(namespace, nil)
			if _, err := c.Create(namespace); err != nil {
				panic(err) // the collection is new
			}
		}
	}
}

// systemNamespaces are those that kube-apiserver makes.
var systemNamespaces = []string{
	metav1.NamespaceDefault, corev1.NamespaceNodeLease, metav1.NamespacePublic, metav1.NamespaceSystem,
}

// resource describes a kind.
func (k kind) resource() watchcache.Resource[store.Object] {
	r := watchcache.Resource[store.Object]{
		Group: k.group, Version: k.version, Plural: k.plural, Kind: k.kind, ShortNames: k.short,
		ClusterScoped: k.scope == cluster, Columns: columns[k.kind], Fields: fields[k.kind], Scale: scales[k.kind],
		Rules: rules[k.kind],
	}
	if slices.Contains(inAll, k.plural) {
		r.Categories = []string{"all"}
	}
	gvk := r.GroupVersionKind()
	r.New = func() store.Object {
		obj, err := scheme.Scheme.New(gvk)
		if err != nil {
			panic(err) // TestAllKinds makes one of each
		}
		return obj.(store.Object)
	}
	return r
}

// typedAs is the same description for another Go type of the objects.
func typedAs[T store.Object](r watchcache.Resource[store.Object]) watchcache.Resource[T] {
	typed := watchcache.Resource[T]{
		Group: r.Group, Version: r.Version, Plural: r.Plural, Kind: r.Kind, ShortNames: r.ShortNames,
		Categories: r.Categories, ClusterScoped: r.ClusterScoped, Scale: r.Scale,
	}
	for _, f := range r.Fields {
		typed.Fields = append(typed.Fields, watchcache.Field[T]{
			Label: f.Label, Indexed: f.Indexed, Value: func(obj T) string { return f.Value(any(obj).(store.Object)) },
		})
	}
	for _, c := range r.Columns {
		typed.Columns = append(typed.Columns, watchcache.Column[T]{
			Name: c.Name, Description: c.Description, Wide: c.Wide,
			Value: func(obj T) any { return c.Value(any(obj).(store.Object)) },
		})
	}
	if fill := r.Rules.Default; fill != nil {
		typed.Rules.Default = func(obj T) { fill(any(obj).(store.Object)) }
	}
	if complete := r.Rules.Complete; complete != nil {
		typed.Rules.Complete = func(obj, stored T) { complete(untyped(obj), untyped(stored)) }
	}
	if validate := r.Rules.Validate; validate != nil {
		typed.Rules.Validate = func(obj, stored T) field.ErrorList { return validate(untyped(obj), untyped(stored)) }
	}
	return typed
}

// untyped is an object as a rule sees it: nil if there is none.
func untyped[T store.Object](obj T) store.Object {
	if value := reflect.ValueOf(obj); !value.IsValid() || value.IsNil() {
		return nil
	}
	return obj
}
