package watchcache

import (
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/store"
)

// Rules are what the API server does with the writes of one kind, beside what it does with those of
// every kind. The zero value does nothing more. The functions must be safe for concurrent use; they
// may keep nothing of their arguments, and stored objects are read-only.
type Rules[T store.Object] struct {
	// Prune drops the fields that the kind does not have, and returns their paths. Clients are
	// warned of them, or refused. Its error is about a field of a wrong form: 400.
	Prune func(obj T) (dropped []string, err error)
	// Default fills in what a writer has left out. The fields are then the writer's.
	Default func(obj T)
	// Complete fills in what the server adds to an object that is about to be stored. Stored is its
	// present state, or nil in a create. The fields are nobody's.
	Complete func(obj, stored T)
	// Validate returns what is wrong with an object that is about to be stored. Stored is its
	// present state, or nil in a create.
	Validate func(obj, stored T) field.ErrorList
	// Create refuses a client's new object with its error, an API status error. Nil, the default,
	// refuses none.
	Create func(obj T) error
	// Delete notes on an object that a client deletes, before any other deletion of it, what must
	// happen before it goes, such as a finalizer. It sets the deletion time itself if the object
	// stays. Nil, the default, notes nothing.
	Delete func(obj T)
	// PlainStatus says that the status is a field like any other, as in a custom resource without
	// the status subresource.
	PlainStatus bool
	// Types are the types of the fields, by which server-side apply merges lists and finds owners.
	// Nil, the default, takes those of client-go for the kinds that it has; objects of other kinds
	// are then merged field by field, and lists are replaced as a whole.
	Types managedfields.TypeConverter
}
