package apiserver

import (
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// Resource is all that [Serve] has to know of a collection. Package builtin has those of the
// built-in kinds, package crd makes those of definitions. A custom resource without a schema needs
// nothing but its Kind.
type Resource[T store.Object] struct {
	// Kind names the objects, and the fields that select them.
	Kind watchcache.Kind[T]
	// Rules are for writes; the zero value has those of a custom resource.
	Rules collection.Rules[T]
	// View is for clients that ask how the resource is called and shown.
	View View[T]
}

// View is how a resource is called and shown, beside the names of its [watchcache.Kind]. The zero
// value has a singular, and tables of names and ages.
type View[T store.Object] struct {
	// Singular is the name of one object, such as "pod". Empty means the kind in lower case.
	Singular string
	// ShortNames are further names that kubectl takes, such as "po".
	ShortNames []string
	// Categories are the groups of resources that kubectl takes as one name, such as "all".
	Categories []string
	// Columns are the columns of a table (kubectl get). None means name and age.
	Columns []Column[T]
	// Schema describes one object in OpenAPI v3, as the API server publishes it: its metadata is a
	// reference to ObjectMeta. Nil, the default, is for Go types, and for documents without a
	// schema.
	Schema *spec.Schema
	// Subresources are those beside status and scale, which follow from the rules.
	Subresources []Subresource
}
