package collection

import (
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/server/internal/object"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// Rules are the API server's rules for the writes of one kind, beside those of every kind. The zero
// value has the rules of a custom resource without a schema. The functions must be safe for
// concurrent use; they may keep nothing of their arguments, and stored objects are read-only.
type Rules[T store.Object] struct {
	// BuiltIn says that the kind is no custom resource. Server-side apply then takes the types of
	// the fields from client-go, a write of the status writes labels, annotations and finalizers
	// too, and a new finalizer needs a domain unless PlainFinalizers is set.
	BuiltIn bool
	// UnconditionalUpdate lets a client's update name no resource version. Without it, such an
	// update is refused, as that of a custom resource is.
	UnconditionalUpdate bool
	// Generation says which changes metadata.generation counts.
	Generation Generation
	// ValidName refuses names. Nil, the default, asks for a DNS subdomain.
	ValidName validation.ValidateNameFunc
	// PlainFinalizers lets the finalizers of a built-in kind have no domain.
	PlainFinalizers bool
	// CreateStatus keeps the status that a client's new object has. Without it, the status is
	// dropped if it is written apart.
	CreateStatus bool
	// PlainStatus says that the status is a field like any other, as in a custom resource without
	// the status subresource.
	PlainStatus bool
	// GracePeriod is how many seconds an object that is deleted stays, marked as terminating, until
	// its owner removes it; zero means that it goes at once. Asked is the period that the caller
	// asks for, or nil. A nil GracePeriod is for kinds without graceful deletion: all but pods.
	GracePeriod func(obj T, asked *int64) int64
	// Held reports whether an object that is deleted stays, as with finalizers of the metadata: a
	// namespace has finalizers in its spec. Nil, the default, is for all other kinds.
	Held func(obj T) bool
	// ReturnDeleted answers a client's deletion with the object as it was last, also where it is
	// gone. Without it, the answer is then a Status.
	ReturnDeleted bool
	// Dependents says what becomes of the dependents of an object that is deleted.
	Dependents Dependents
	// Scale says where objects have their replicas; nil means that they cannot be scaled.
	Scale *Scale
	// Types are the types of the fields, by which server-side apply merges lists and finds owners.
	// Nil, the default, takes those of client-go if BuiltIn is set; objects of other kinds are then
	// merged field by field, and lists are replaced as a whole.
	Types managedfields.TypeConverter

	// Versions are those in which clients may read and write the objects, beside the kind's own.
	Versions []Version
	// Of objects that are converted; else empty.
	stored     schema.GroupVersionKind
	keepStatus func(next, stored T) // annotations may have a part of the status

	// The functions are called for the writes of a client: see [Collection.With].

	// Prune drops the fields that the kind does not have, and returns their paths. Clients are
	// warned of them, or refused. Its error is about a field of a wrong form: 400.
	Prune func(obj T) (dropped []string, err error)
	// Default fills in the fields that a writer has left out. They are then the writer's.
	Default func(obj T)
	// Complete fills in the fields that the server adds to an object that is about to be stored.
	// Stored is its present state, or nil in a create. The fields have no owner.
	Complete func(obj, stored T)
	// Validate returns the faults of an object that is about to be stored. Stored is its present
	// state, or nil in a create.
	Validate func(obj, stored T) field.ErrorList
	// Create refuses a client's new object with its error, an API status error. Nil, the default,
	// refuses none.
	Create func(obj T) error
	// Delete notes on an object that a client deletes, before any other deletion of it, the work
	// that must be done before it goes, such as a finalizer. It sets the deletion time itself if
	// the object stays. Nil, the default, notes nothing.
	Delete func(obj T)
}

// Generation says which changes of an object its generation counts.
type Generation int

// The ways of counting.
const (
	// CountAll counts every change but those of the metadata, and of the status if that is written
	// apart: the rule of custom resources.
	CountAll Generation = iota
	// CountSpec counts changes of the spec.
	CountSpec
	// CountNothing gives new objects no generation.
	CountNothing
)

// Dependents says what becomes of the dependents of an object, the objects that name it as their
// owner, when it is deleted.
type Dependents int

// The policies.
const (
	// DeleteDependents deletes them, unless the options of the deletion say otherwise.
	DeleteDependents Dependents = iota
	// OrphanDependents keeps them, unless the options of the deletion say otherwise.
	OrphanDependents
	// IgnoreDependents heeds no option: the objects of the kind are no owners.
	IgnoreDependents
)

// Scale is where the objects of a kind have the fields of the scale subresource. A path is the
// names of fields from the root on.
type Scale struct {
	// SpecReplicas is the path of the wanted number.
	SpecReplicas []string
	// StatusReplicas is the path of the number that there is.
	StatusReplicas []string
	// Selector is the path of the label selector of the pods that are counted: a query string, a
	// map of labels or a LabelSelector. Nil means none.
	Selector []string
}

// hasStatus reports whether objects have a status that is written apart. A document has one unless
// its rules say otherwise.
func (r Rules[T]) hasStatus(kind watchcache.Kind[T]) bool {
	return !r.PlainStatus && object.HasStatus(kind.Empty())
}
